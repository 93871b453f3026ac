# The questions. Each takes the table that they share, and hands on what else it was given.

table_of <- function(quasi_identifiers, sensitive, bins, levels, count, missing, person, contributions, per_group,
                     outside = NULL) {
  named(list(
    quasi_identifiers = I(as.character(quasi_identifiers)), sensitive = I(as.character(sensitive)),
    bins = by_column(bins, "bins"), levels = as_levels(levels), count = count, missing = missing, outside = outside,
    person = person, contributions = contributions, per_group = per_group
  ))
}

ask_of_table <- function(question, class, data, table, arguments, more = list(), sent = list()) {
  source <- describe_source(data, "data", c(table$quasi_identifiers, table$sensitive, table$count, table$person))
  request <- c(list(data = source, table = table, arguments = arguments), more)
  ask(question, request, c(list(data = encode(data, source)), sent), class)
}

cellrisk_assess <- function(data, quasi_identifiers, sensitive, epsilon = NULL, mechanism = "geometric", delta = NULL,
                            ..., bins = NULL, levels = NULL, count = NULL, missing = "category", perturbation = NULL,
                            person = NULL, contributions = NULL, per_group = NULL) {
  table <- table_of(quasi_identifiers, sensitive, bins, levels, count, missing, person, contributions, per_group)
  if (is.null(perturbation)) {
    if (is.null(epsilon)) {
      refuse("no epsilon was given; give one, epsilon = 1, or a perturbation")
    }
    arguments <- list(mechanism = mechanism, epsilon = epsilon, delta = delta, ...)
    return(ask_of_table("assess", "assessment", data, table, arguments))
  }
  if (!is.null(epsilon)) {
    refuse("a perturbation has no epsilon; leave epsilon or perturbation out")
  }
  sent <- list()
  perturbation <- as_perturbation(perturbation)
  if (is.data.frame(perturbation)) {
    sent$perturbation <- encode(perturbation, describe_source(perturbation, "perturbation"))
    perturbation <- list(frame = TRUE)
  }
  ask_of_table("assess", "assessment", data, table, list(delta = delta, ...), list(perturbation = perturbation), sent)
}

cellrisk_curve <- function(data, quasi_identifiers, sensitive, epsilon = 10^seq(-3, 2, length.out = 101),
                           mechanism = "geometric", measures = c("caused", "local"), forms = "tight",
                           weights = "records", ..., bins = NULL, levels = NULL, count = NULL, missing = "category",
                           person = NULL, contributions = NULL, per_group = NULL) {
  arguments <- list(
    mechanism = mechanism, epsilon = I(epsilon), measures = measures, forms = forms, weights = weights, ...
  )
  table <- table_of(quasi_identifiers, sensitive, bins, levels, count, missing, person, contributions, per_group)
  ask_of_table("curve", "curve", data, table, arguments)
}

cellrisk_choose <- function(data, quasi_identifiers, sensitive, mechanism = "geometric", max_caused = NULL,
                            max_certain = NULL, max_ceiling = NULL, max_risk = NULL, max_epsilon = NULL, ...,
                            bins = NULL, levels = NULL, count = NULL, missing = "category",
                            person = NULL, contributions = NULL, per_group = NULL) {
  arguments <- list(
    mechanism = mechanism, max_caused = max_caused, max_certain = max_certain, max_ceiling = max_ceiling,
    max_risk = max_risk, max_epsilon = max_epsilon, ...
  )
  table <- table_of(quasi_identifiers, sensitive, bins, levels, count, missing, person, contributions, per_group)
  ask_of_table("choose", "choice", data, table, arguments)
}

cellrisk_release <- function(data, quasi_identifiers, sensitive, epsilon, mechanism = "geometric", delta = NULL,
                             output = NULL, force = FALSE, ledger = NULL, purpose = NULL, cohort = NULL, exclude = NULL,
                             ..., bins = NULL, levels = NULL, count = NULL, missing = "category", outside = "drop",
                             person = NULL, contributions = NULL, per_group = NULL) {
  arguments <- list(mechanism = mechanism, epsilon = epsilon, delta = delta, exclude = as_rules(exclude), ...)
  more <- list(output = path_of(output), force = force)
  if (!is.null(ledger)) {
    more$record <- named(list(ledger = path_of(ledger), purpose = purpose, cohort = cohort))
  } else if (!is.null(purpose) || !is.null(cohort)) {
    refuse("a cohort and a purpose are recorded in a ledger; name one: ledger = \"releases.db\"")
  }
  table <- table_of(
    quasi_identifiers, sensitive, bins, levels, count, missing, person, contributions, per_group, outside
  )
  ask_of_table("release", "release", data, table, arguments, named(more))
}

cellrisk_audit <- function(original, released, quasi_identifiers, sensitive, released_count = NULL, mechanism = NULL,
                           epsilon = NULL, delta = NULL, ..., bins = NULL, levels = NULL, count = NULL,
                           missing = "category",
                           person = NULL, contributions = NULL, per_group = NULL) {
  arguments <- list(
    count = released_count, mechanism = mechanism, epsilon = epsilon, delta = delta, bins = by_column(bins, "bins"), ...
  )
  if (inherits(released, "cellrisk_release")) {
    source <- describe_source(released$frame, "released")
    sent <- list(released = encode(released$frame, source))
    source <- list(description = released$json)
  } else {
    source <- describe_source(released, "released", c(quasi_identifiers, sensitive, released_count))
    sent <- list(released = encode(released, source))
  }
  table <- table_of(quasi_identifiers, sensitive, bins, levels, count, missing, person, contributions, per_group)
  ask_of_table("audit", "audit", original, table, arguments, list(released = source), sent)
}

cellrisk_report <- function(data, quasi_identifiers, sensitive, output, epsilon = NULL, mechanism = "geometric",
                            delta = NULL, ..., public = FALSE, bins = NULL, levels = NULL, count = NULL,
                            missing = "category",
                            person = NULL, contributions = NULL, per_group = NULL) {
  arguments <- list(mechanism = mechanism, epsilon = epsilon, delta = delta, public = public, ...)
  table <- table_of(
    quasi_identifiers, sensitive, bins, levels, count, missing, person, contributions, per_group,
    outside = if (isTRUE(public)) "drop" else "error"
  )
  ask_of_table("report", "report", data, table, arguments, list(output = path_of(output)))
}

path_of <- function(path) {
  if (is.null(path)) NULL else path.expand(enc2utf8(path))
}
