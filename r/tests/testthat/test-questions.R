test_that("the risk is the one of the definition, worked in R", {
  skip_without_cellrisk()
  epsilon <- 0.7
  counts <- unclass(table(paste(people$sex, people$town), people$job))
  # Two-sided geometric noise: a count m is released as 0 with probability P(noise <= -m).
  ratio <- exp(-epsilon)
  vanish <- function(m) ifelse(m == 0, 1 / (1 + ratio), ratio^m / (1 + ratio))
  exposed <- 0
  for (cell in seq_len(nrow(counts))) {
    for (label in seq_len(ncol(counts))) {
      others <- prod(vanish(counts[cell, -label]))
      exposed <- exposed + counts[cell, label] * (1 - vanish(counts[cell, label])) * others
    }
  }
  # P(noise <= 0) is 1 / (1 + ratio), and P(noise <= -m) = ratio^m / (1 + ratio).
  found <- as.data.frame(cellrisk_assess(people, keys, "job", epsilon))
  risk <- found$risk[found$measure == "local" & found$form == "tight" & found$weights %in% "records"]
  expect_equal(risk, exposed / nrow(people), tolerance = 1e-9)
})

test_that("records, counts, factors, whole numbers and files give the same answer", {
  skip_without_cellrisk()
  one <- as.data.frame(cellrisk_assess(people, keys, "job", 1))$risk
  counted <- as.data.frame(table(people), responseName = "n", stringsAsFactors = TRUE)
  expect_equal(as.data.frame(cellrisk_assess(counted, keys, "job", 1, count = "n"))$risk, one, tolerance = 1e-9)
  coded <- transform(people, town = as.integer(factor(town)))
  expect_equal(as.data.frame(cellrisk_assess(coded, keys, "job", 1))$risk, one, tolerance = 1e-9)
  place <- tempfile(fileext = ".csv")
  on.exit(unlink(place))
  write.csv(people, place, row.names = FALSE)
  expect_equal(as.data.frame(cellrisk_assess(place, keys, "job", 1))$risk, one, tolerance = 1e-9)
})

test_that("NA is a category of its own, and so is an empty text", {
  skip_without_cellrisk()
  data <- rbind(people, transform(people[1:2, ], sex = NA), transform(people[3, ], sex = ""))
  expect_equal(cellrisk_assess(data, keys, "job", 1)$details$table$cells, 6)
  expect_equal(cellrisk_assess(data, keys, "job", 1, missing = "drop")$details$table$records, 13)
})

test_that("a curve is what assess says at each epsilon", {
  skip_without_cellrisk()
  curve <- cellrisk_curve(people, keys, "job", epsilon = c(0.5, 2), measures = "local")
  assessed <- vapply(c(0.5, 2), function(epsilon) {
    found <- as.data.frame(cellrisk_assess(people, keys, "job", epsilon, measures = "local"))
    found$risk[found$form == "tight" & found$weights == "records"]
  }, 0)
  expect_equal(as.data.frame(curve)$risk, assessed, tolerance = 1e-9)
  expect_equal(summary(curve)$figures$epsilon, c(0.5, 2))
})

test_that("the epsilon that is chosen is the largest within the ceiling", {
  skip_without_cellrisk()
  found <- cellrisk_choose(people, keys, "job", max_ceiling = 0.7)
  # e^epsilon / (1 + e^epsilon) = 0.7
  expect_equal(found$details$exact_epsilon, log(0.7 / 0.3), tolerance = 1e-5)
  expect_equal(found$details$epsilon, 0.84)
  expect_equal(as.data.frame(found)$high, found$details$exact_epsilon)
  none <- cellrisk_choose(people, keys, "job", max_risk = 1)
  expect_null(none$details$epsilon)
  expect_match(none$details$why, "no limit binds")
})

levels_of_people <- list(sex = c("f", "m"), town = c("north", "south"), job = c("cook", "smith", "weaver"))

test_that("a release has every count of the domain, and is written whole with its description", {
  skip_without_opendp()
  folder <- tempfile("released")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  place <- file.path(folder, "released.csv")
  released <- cellrisk_release(people, keys, "job", 50, levels = levels_of_people, output = place)
  frame <- as.data.frame(released)
  expect_equal(nrow(frame), 12)
  expect_equal(sum(frame$count), 12) # at epsilon 50 there is no noise to speak of
  expect_equal(files_in(folder), c("released.csv", "released.csv.json"))
  expect_equal(read.csv(place)$count, frame$count)
  expect_error(
    cellrisk_release(people, keys, "job", 50, levels = levels_of_people, output = place), "exists",
    class = "cellrisk_invalid_input"
  )
  excluded <- cellrisk_release(
    people, keys, "job", 50, levels = levels_of_people, exclude = list(list(sex = "f", job = "weaver"))
  )
  expect_equal(nrow(as.data.frame(excluded)), 10)
})

test_that("labels that occur are refused as a domain", {
  skip_without_opendp()
  expect_error(cellrisk_release(people, keys, "job", 1), "declare", class = "cellrisk_invalid_input")
})

test_that("a release is recorded in a ledger, within its limit", {
  skip_without_opendp()
  skip_if_not(reticulate::py_module_available("sqlalchemy"), "the Python package sqlalchemy is not found")
  folder <- tempfile("ledger")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  place <- file.path(folder, "releases.db")
  cr <- reticulate::import("cellrisk", convert = FALSE)
  ledger <- cr$Ledger(place, create = TRUE)
  ledger$set_limit("everyone", epsilon = 1)
  ledger$close()
  ask <- function(name) {
    cellrisk_release(
      people, keys, "job", 0.7, levels = levels_of_people, output = file.path(folder, name), ledger = place,
      purpose = "a test"
    )
  }
  first <- ask("one.csv")
  expect_gt(first$entry, 0)
  expect_output(print(first), "Recorded in the ledger as entry")
  expect_error(ask("two.csv"), "limit", class = "cellrisk_error")
  expect_false(file.exists(file.path(folder, "two.csv")))
  expect_error(
    cellrisk_release(people, keys, "job", 0.1, levels = levels_of_people, ledger = place), "name it: output",
    class = "cellrisk_error"
  )
})

test_that("the audit of a release knows how it was made", {
  skip_without_opendp()
  released <- cellrisk_release(people, keys, "job", 3, levels = levels_of_people)
  found <- cellrisk_audit(people, released, keys, "job", levels = levels_of_people)
  frame <- as.data.frame(found)
  expect_true("informed" %in% found$details$attackers$attack) # only where the mechanism is known
  ask <- function(...) {
    as.data.frame(cellrisk_audit(people, as.data.frame(released), keys, "job", "count", ..., levels = levels_of_people))
  }
  expect_equal(ask(mechanism = "geometric", epsilon = 3)$value, frame$value)
  unknown <- ask()
})

test_that("a report is written, for its owner alone", {
  skip_without_cellrisk()
  place <- tempfile(fileext = ".html")
  on.exit(unlink(place))
  found <- cellrisk_report(people, keys, "job", place, epsilon = 1, title = "Jobs", preparation = "none")
  expect_true(file.exists(place))
  expect_equal(format(file.mode(place)), "600")
  expect_match(paste(readLines(place, encoding = "UTF-8"), collapse = "\n"), "Jobs", fixed = TRUE)
  expect_equal(found$details$verdict, "open")
  expect_output(print(found), "Written to")
  expect_error(plot(found), "open its file", class = "cellrisk_error")
  expect_error(cellrisk_report(people, keys, "job", "x.doc", epsilon = 1), ".html", class = "cellrisk_error")
})

test_that("perturbations are rules, or tables as ptable makes them", {
  skip_without_cellrisk()
  rule <- cellrisk_assess(people, keys, "job", perturbation = "random-rounding:3", compare = NULL)
  # The same as a table P(i -> j), up to the largest count there is.
  table <- do.call(rbind, lapply(0:4, function(i) {
    low <- 3 * (i %/% 3)
    if (i %% 3 == 0) data.frame(i = i, j = i, p = 1) else data.frame(i = i, j = c(low, low + 3), p = c(3 - i %% 3, i %% 3) / 3)
  }))
  given <- cellrisk_assess(people, keys, "job", perturbation = table)
  expect_equal(as.data.frame(given)$risk, as.data.frame(rule)$risk, tolerance = 1e-9)
  # As create_cnt_ptable gives it: the slot is a data.table with more columns, and says elsewhere that it is for counts.
  upper <- ave(table$p, table$i, FUN = cumsum)
  slot <- cbind(table, v = table$j - table$i, p_int_lb = upper - table$p, p_int_ub = upper, type = "all")
  class(slot) <- c("data.table", "data.frame")
  make <- methods::setClass("ptableLike", representation(pTable = "ANY", table = "character"))
  found <- cellrisk_assess(people, keys, "job", perturbation = make(pTable = slot, table = "cnts"))
  expect_equal(as.data.frame(found)$risk, as.data.frame(rule)$risk, tolerance = 1e-9)
  expect_error(
    cellrisk_assess(people, keys, "job", perturbation = make(pTable = slot, table = "nums")), "create_cnt_ptable",
    class = "cellrisk_error"
  )
  expect_error(cellrisk_assess(people, keys, "job", 1, perturbation = "cell-key"), "has no epsilon", class = "cellrisk_error")
})

test_that("what sdcMicro has changed is audited beside the original", {
  skip_without_cellrisk()
  # As createSdcObj and extractManipData give them: key variables are factors, and what is suppressed is NA.
  original <- data.frame(urbrur = rep(c(1L, 2L), c(7, 5)), sex = people$sex, job = people$job, sampling_weight = 100)
  changed <- data.frame(
    urbrur = factor(original$urbrur), sex = factor(original$sex), job = original$job, sampling_weight = 100
  )
  changed$sex[8] <- NA # the one woman of town 2
  frame <- as.data.frame(cellrisk_audit(original, changed, c("urbrur", "sex"), "job"))
  of <- function(figure, which) frame$value[frame$figure == figure & frame$of == which]
  # By hand: three women cooks of town 1 and the woman of town 2 are alone with their job; she is not to be found after.
  expect_equal(of("disco", "original"), 4 / 12, tolerance = 1e-9)
  expect_equal(of("disco", "released"), 3 / 12, tolerance = 1e-9)
  expect_equal(of("repu", "original"), 1 / 12, tolerance = 1e-9)
  expect_equal(of("repu", "released"), 0)
})

test_that("people may have several records", {
  skip_without_opendp()
  visits <- transform(people, who = rep(c("a", "b", "c", "d"), 3))
  found <- cellrisk_assess(visits, keys, "job", 1, person = "who", contributions = 2, per_group = 1)
  expect_equal(found$details$unit, list(kind = "person", contributions = 2L, per_group = 1L, enforced = TRUE))
  expect_equal(found$details$table$records, 8)
  domain <- list(sex = c("f", "m"), town = c("north", "south"), job = c("cook", "smith"))
  made <- cellrisk_release(visits, keys, "job", 1, levels = domain, contributions = 3)
  expect_equal(made$details$unit$enforced, FALSE)
  expect_equal(made$details$mechanism$scale, 3)
  expect_error(cellrisk_assess(visits, keys, "job", 1, person = "who"), "contributions=3")
})
