test_that("refusals are conditions of one line, by kind, without a value of the data", {
  skip_without_cellrisk()
  unknown <- tryCatch(cellrisk_assess(people, "twon", "job", 1), error = identity)
  expect_s3_class(unknown, c("cellrisk_unknown_name", "cellrisk_error", "error", "condition"), exact = TRUE)
  expect_match(conditionMessage(unknown), "the data frame has no column 'twon'")
  expect_no_match(conditionMessage(unknown), "\n")
  invalid <- tryCatch(cellrisk_assess(people, keys, "job", -1), error = identity)
  expect_s3_class(invalid, "cellrisk_invalid_input")
  expect_error(cellrisk_assess(people, keys, "job", 1, epsilons = 2), "no such argument; got epsilons", class = "cellrisk_error")
  outside <- tryCatch(
    cellrisk_assess(people, keys, "job", 1, levels = list(job = "cook")), error = conditionMessage
  )
  expect_no_match(outside, "smith")
})

test_that("a fault in cellrisk itself is a condition too, and does not quote what it was about", {
  skip_without_cellrisk()
  said <- cellrisk:::helper()$answer("{\"question\": \"secret\"}")
  found <- jsonlite::fromJSON(reticulate::py_to_r(said))
  expect_equal(found$error$kind, "fault")
  expect_no_match(found$error$message, "secret")
})

test_that("answers print, format, summarise and become data frames", {
  skip_without_cellrisk()
  found <- cellrisk_assess(people, keys, "job", 1)
  expect_output(expect_invisible(print(found)), "Internal: computed from the raw data")
  expect_lte(max(nchar(grep("  ", capture.output(print(found)), invert = TRUE, value = TRUE))), getOption("width"))
  expect_equal(format(found), found$headline)
  figures <- summary(found)$figures
  expect_equal(figures$caused, found$details$decision$caused$people)
  expect_equal(figures$ceiling, exp(1) / (1 + exp(1)), tolerance = 1e-6)
  expect_output(print(summary(found)), "caused")
  frame <- as.data.frame(found, row.names = paste0("r", seq_along(found$frame$risk)))
  expect_s3_class(frame, "data.frame")
  expect_equal(row.names(frame)[1], "r1")
  expect_type(frame$risk, "double")
  expect_equal(jsonlite::fromJSON(found$json)$table$records, nrow(people))
})

test_that("answers are drawn", {
  skip_without_cellrisk()
  place <- tempfile(fileext = ".pdf")
  grDevices::pdf(place)
  on.exit({
    grDevices::dev.off()
    unlink(place)
  })
  for (found in list(
    cellrisk_assess(people, keys, "job", 1),
    cellrisk_curve(people, keys, "job", epsilon = c(0.1, 1), mechanism = c("geometric", "laplace")),
    cellrisk_choose(people, keys, "job", max_ceiling = 0.7, mechanism = c("geometric", "gaussian-analytic")),
    cellrisk_audit(people, synthetic, keys, "job")
  )) {
    expect_invisible(plot(found))
  }
})

test_that("nothing is left behind, whether a question is answered, refused or broken off", {
  skip_without_cellrisk()
  cellrisk_assess(people, keys, "job", 1) # what Python itself makes when it starts
  folder <- tempfile("python")
  dir.create(folder)
  python <- reticulate::import("tempfile", convert = FALSE)
  usual <- python$tempdir
  python$tempdir <- folder
  on.exit({
    python$tempdir <- usual
    unlink(folder, recursive = TRUE)
  })
  before <- files_in(tempdir())
  cellrisk_assess(people, keys, "job", perturbation = data.frame(i = 0:1, j = 0:1, p = 1))
  cellrisk_audit(people, synthetic, keys, "job")
  expect_error(cellrisk_assess(people, keys, "job", -1), class = "cellrisk_error")
  expect_error(cellrisk_assess(people, keys, "job", perturbation = data.frame(a = 1)), class = "cellrisk_error")
  expect_error(cellrisk_assess(people, keys, "job", stop("no epsilon today")), "no epsilon today")
  expect_equal(files_in(tempdir()), before)
})
