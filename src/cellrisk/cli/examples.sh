cellrisk demo
cellrisk demo --save adult.parquet

cellrisk serve
cellrisk serve --folder tables --no-browser

cellrisk inspect adult.parquet
cellrisk inspect adult.parquet --qid age,sex --sensitive income \
  --bin age=5
# cellrisk demo --save adult.parquet writes the table.

cellrisk assess adult.parquet --qid age,sex --sensitive income --epsilon 1
cellrisk assess adult.parquet --qid age,sex --sensitive income --epsilon 1 \
  --max-caused 2% --json
# cellrisk demo --save adult.parquet writes the table.

cellrisk explain adult.parquet --qid age,sex --sensitive income \
  --epsilon 1 --top 5
cellrisk explain adult.parquet --qid age,sex --sensitive income \
  --epsilon 1 --merge 'age:young=17|18|19|20'
# cellrisk demo --save adult.parquet writes the table.

cellrisk curve adult.parquet --qid age,sex --sensitive income \
  --plot curve.svg
cellrisk curve adult.parquet --qid age,sex --sensitive income \
  --epsilon 0.01:10:50 --measure caused --csv curve.csv
# cellrisk demo --save adult.parquet writes the table.

cellrisk choose adult.parquet --qid age,sex --sensitive income \
  --max-caused 0.5%
cellrisk choose adult.parquet --qid age,sex --sensitive income \
  --max-risk 0.1 --epsilon 0.01:10 --plot choice.svg
# cellrisk demo --save adult.parquet writes the table.

cellrisk choose-private adult.parquet --qid sex --sensitive income \
  --levels 'sex=Female|Male' --levels 'income=<=50K|>50K' \
  --choice-epsilon 0.1 --max-caused-people 500
cellrisk choose-private adult.parquet --qid sex --sensitive income \
  --levels 'sex=Female|Male' --levels 'income=<=50K|>50K' \
  --choice-epsilon 0.1 --max-caused-people 500 --grid 0.1:5:20
# cellrisk demo --save adult.parquet writes the table.

cellrisk utility adult.parquet --qid age,sex --sensitive income \
  --epsilon 0.1,1,10
cellrisk utility adult.parquet --qid age,sex --sensitive income \
  --epsilon 1 --ways 1,2 --csv utility.csv
# cellrisk demo --save adult.parquet writes the table.

cellrisk report adult.parquet --qid age,sex --sensitive income \
  --max-caused 0.5% --output report.html
cellrisk report adult.parquet --qid age,sex --sensitive income --epsilon 1 \
  --public --output statement.html
# cellrisk demo --save adult.parquet writes the table.

cellrisk simulate adult.parquet --qid age,sex --sensitive income \
  --epsilon 1 --releases 200
cellrisk simulate adult.parquet --qid age,sex --sensitive income \
  --perturbation random-rounding:3 --releases 200
# cellrisk demo --save adult.parquet writes the table.

cellrisk release adult.parquet --qid age,sex --sensitive income \
  --bin age=0/20/40/60/100 --levels 'sex=Female|Male' \
  --levels 'income=<=50K|>50K' --epsilon 1 --output released.parquet
cellrisk release adult.parquet --qid sex --sensitive income \
  --levels 'sex=Female|Male' --levels 'income=<=50K|>50K' --epsilon 0.5 \
  --output sexes.csv --ledger releases.db --purpose yearbook
# cellrisk demo --save adult.parquet writes the table.
# cellrisk ledger create releases.db makes the ledger.

cellrisk publish-risk adult.parquet --qid sex --sensitive income \
  --levels 'sex=Female|Male' --levels 'income=<=50K|>50K' --epsilon 1 \
  --risk-epsilon 0.05
cellrisk publish-risk adult.parquet --qid sex --sensitive income \
  --levels 'sex=Female|Male' --levels 'income=<=50K|>50K' --epsilon 1 \
  --risk-epsilon 0.05 --ledger releases.db --purpose yearbook
# cellrisk demo --save adult.parquet writes the table.
# cellrisk ledger create releases.db makes the ledger.

cellrisk audit adult.parquet sexes.csv --qid sex --sensitive income
cellrisk audit adult.parquet sexes.csv --qid sex --sensitive income \
  --top 3
# cellrisk demo --save adult.parquet writes the table.
# cellrisk release --help shows how sexes.csv is made.

cellrisk average adult.parquet --qid age,sex --sensitive income \
  --epsilon 0.5 --releases 12
cellrisk average adult.parquet --qid age,sex --sensitive income \
  --epsilon 0.5 --releases 12 --method basic
# cellrisk demo --save adult.parquet writes the table.

cellrisk together assess set.toml
cellrisk together assess set.toml --certainty 0.95
# cellrisk demo --save adult.parquet writes the table.
# A set.toml for these examples:
#   source = "adult.parquet"
#   sensitive = "income"
#   epsilon = 1
#   bin = ["age=0/30/60/100"]
#   levels = {sex = ["Female", "Male"], income = ["<=50K", ">50K"]}
#   [[table]]
#   qid = ["sex"]
#   [[table]]
#   qid = ["age"]

cellrisk together split set.toml --total-epsilon 2
cellrisk together split set.toml --total-epsilon 2 --use 2,1
# cellrisk together assess --help shows set.toml.

cellrisk together release set.toml --output both
cellrisk together release set.toml --output yearbook --ledger releases.db \
  --format csv
# cellrisk together assess --help shows set.toml.
# cellrisk ledger create releases.db makes the ledger.

cellrisk together report set.toml --max-epsilon 3 --output set.html
cellrisk together report set.toml --max-caused 1% --output judged.html
# cellrisk together assess --help shows set.toml.

cellrisk ledger create releases.db
cellrisk ledger create other.db --head noted.txt

cellrisk ledger add releases.db --attribute income --qid age,sex \
  --epsilon 0.5 --mechanism geometric --purpose yearbook
cellrisk ledger add other.db --qid age,sex --rho 0.01 --head noted.txt \
  --purpose 'counts by another tool'
# cellrisk ledger create releases.db makes the ledger.
# cellrisk ledger create other.db --head noted.txt makes the other ledger.

cellrisk ledger limit releases.db --epsilon 20
cellrisk ledger limit releases.db --epsilon 25 --delta 1e-6 --method rdp
# cellrisk ledger create releases.db makes the ledger.

cellrisk ledger list releases.db
cellrisk ledger list releases.db --kind release --json
# cellrisk ledger create releases.db makes the ledger.

cellrisk ledger show releases.db
cellrisk ledger show releases.db 1
# cellrisk ledger create releases.db makes the ledger.

cellrisk ledger verify releases.db
cellrisk ledger verify releases.db --no-files
# cellrisk ledger create releases.db makes the ledger.

cellrisk ledger checkpoint releases.db
cellrisk ledger checkpoint other.db --head noted.txt
# cellrisk ledger create releases.db makes the ledger.
# cellrisk ledger create other.db --head noted.txt makes the other ledger.

cellrisk ledger recover releases.db .
cellrisk ledger recover releases.db . --json
# cellrisk ledger create releases.db makes the ledger.

cellrisk ledger export releases.db --output entries.jsonl
cellrisk ledger export releases.db --output some.jsonl --cohort everyone
# cellrisk ledger create releases.db makes the ledger.

cellrisk ledger risk releases.db adult.parquet
cellrisk ledger risk releases.db adult.parquet --measure local \
  --plot risk.svg
# cellrisk demo --save adult.parquet writes the table.
# cellrisk ledger create releases.db makes the ledger.

cellrisk ledger plan releases.db --epsilon 0.5
cellrisk ledger plan releases.db --max-ceiling 0.99
# cellrisk ledger create releases.db makes the ledger.
