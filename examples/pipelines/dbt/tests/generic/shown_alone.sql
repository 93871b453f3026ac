{% test shown_alone(model, quasi_identifiers, sensitive, max_share) %}

-- Fails where a larger share of people stands in cells that hold one value alone: what the raw table gives away.
with cells as (
    select
        count(*) as people,
        count(distinct {{ sensitive }}) + max(case when {{ sensitive }} is null then 1 else 0 end) as labels
    from {{ model }}
    group by {{ quasi_identifiers | join(', ') }}
),
totals as (
    select sum(case when labels = 1 then people else 0 end) * 1.0 / sum(people) as share from cells
)
select share from totals where share > {{ max_share }}

{% endtest %}
