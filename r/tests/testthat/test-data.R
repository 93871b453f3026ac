# How a data frame passes to Python. The expected texts are written out by hand.

text_of <- function(data) {
  source <- cellrisk:::describe_source(data, "data")
  text <- rawToChar(cellrisk:::encode(data, source))
  Encoding(text) <- "UTF-8"
  strsplit(text, "\n", fixed = TRUE)[[1]]
}

test_that("missing values are empty, and empty texts are not missing", {
  data <- data.frame(a = c("x", "", NA), b = c(1L, NA, -3L), c = c(TRUE, NA, FALSE), d = c(0.1, NA, 1 / 3))
  expect_equal(text_of(data), c(
    "\"a\",\"b\",\"c\",\"d\"", "\"x\",1,TRUE,0.10000000000000001", "\"\",,,", ",-3,FALSE,0.33333333333333331"
  ))
})

test_that("quotes, commas, lines and letters of all kinds pass", {
  latin <- "caf\xe9"
  Encoding(latin) <- "latin1"
  data <- data.frame(a = c("say \"no\"", "a,b", latin), check.names = FALSE)
  names(data) <- "the \"a\""
  expect_equal(text_of(data), c("\"the \"\"a\"\"\"", "\"say \"\"no\"\"\"", "\"a,b\"", "\"caf\u00e9\""))
})

test_that("large whole numbers keep their digits, and dates are texts", {
  data <- data.frame(a = c(100000L, 1234567890L), b = c(1e5, 1e15), day = as.Date(c("2026-01-02", NA)))
  expect_equal(text_of(data)[2:3], c("100000,100000,\"2026-01-02\"", "1234567890,1000000000000000,"))
})

test_that("factors are their labels, whatever their order", {
  expect_equal(text_of(data.frame(a = factor(c("b", "a", NA), levels = c("b", "a")))), c("\"a\"", "\"b\"", "\"a\"", ""))
})

test_that("columns that are lists are left out unless they are named", {
  data <- data.frame(a = 1:2)
  data$geometry <- list(1, 2)
  expect_equal(names(cellrisk:::describe_source(data, "data")$kinds), "a")
  expect_error(cellrisk:::describe_source(data, "data", "geometry"), "got geometry; convert them", class = "cellrisk_error")
})

test_that("what is no data is refused in one line", {
  expect_error(cellrisk_assess(1:3, "a", "b", 1), "must be a data frame or the path of a file; got integer", class = "cellrisk_error")
  kept <- methods::setClass("sdcMicroObjLike", representation(origData = "data.frame"))
  expect_error(cellrisk_assess(kept(origData = people), "a", "b", 1), "x@origData of sdcMicro", class = "cellrisk_error")
  expect_error(cellrisk_assess(people, keys, "job", 1, bins = list(5)), "bins needs the name of a column", class = "cellrisk_error")
  expect_error(cellrisk_assess(people, keys, "job", 1, "x", NULL, "y"), "need their names", class = "cellrisk_error")
  expect_error(cellrisk_assess(people, keys, "job"), "no epsilon was given", class = "cellrisk_error")
})
