# Where Python or cellrisk is not found, what needs them is skipped; what only R does is tested all the same.
skip_without_cellrisk <- function() {
  skip_if_not(cellrisk_available(), "the Python package cellrisk is not found")
}

skip_without_opendp <- function() {
  skip_without_cellrisk()
  skip_if_not(reticulate::py_module_available("opendp"), "the Python package opendp is not found")
}

people <- data.frame(
  sex = rep(c("f", "m", "m", "f", "m"), c(3, 1, 3, 1, 4)),
  town = rep(c("north", "south"), c(7, 5)),
  job = c(rep("cook", 4), rep("smith", 4), rep(c("cook", "smith"), each = 2))
)

synthetic <- data.frame(
  sex = rep(c("f", "m", "m", "f"), c(2, 4, 4, 2)),
  town = rep(c("north", "south", "west"), c(6, 4, 2)),
  job = c(rep("cook", 2), rep("smith", 4), rep("cook", 3), "smith", rep("cook", 2))
)

keys <- c("sex", "town")

# Everything under a folder, with what is hidden.
files_in <- function(folder) {
  sort(list.files(folder, all.files = TRUE, recursive = TRUE, include.dirs = TRUE, no.. = TRUE))
}
