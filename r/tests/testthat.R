library(testthat)
library(cellrisk)

test_check("cellrisk")
