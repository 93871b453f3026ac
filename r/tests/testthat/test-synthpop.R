# DiSCO, DiS, repU and TCAP by the formulas that synthpop documents (Raab, Nowok and Dibben 2024), worked on tables of R:
# d is the original by target and key, s the synthetic one.

by_synthpop <- function(original, synthetic, keys, target) {
  key <- function(data) do.call(paste, c(data[keys], sep = "\r"))
  all_keys <- union(key(original), key(synthetic))
  labels <- union(original[[target]], synthetic[[target]])
  count <- function(data) table(factor(data[[target]], labels), factor(key(data), all_keys))
  d <- count(original)
  s <- count(synthetic)
  totals <- matrix(colSums(s), nrow(s), ncol(s), byrow = TRUE)
  disclosive <- s > 0 & s == totals
  disco <- sum(d[disclosive]) / sum(d)
  dis <- sum(d[, colSums(disclosive) > 0]) / sum(d)
  c(disco = disco, dis = dis, repu = sum(colSums(d) == 1 & colSums(s) == 1) / sum(d), tcap = disco / dis)
}

audited <- function(original, synthetic, keys, target) {
  frame <- as.data.frame(cellrisk_audit(original, synthetic, keys, target))
  frame <- frame[frame$of == "released", ]
  stats::setNames(frame$value, frame$figure)[c("disco", "dis", "repu", "tcap")]
}

test_that("by hand, in the example of the documentation", {
  expect_equal(by_synthpop(people, synthetic, keys, "job")[["disco"]], 6 / 12)
  expect_equal(by_synthpop(people, synthetic, keys, "job")[["tcap"]], 6 / 7)
})

test_that("audit gives synthpop's figures", {
  skip_without_cellrisk()
  expect_equal(audited(people, synthetic, keys, "job"), by_synthpop(people, synthetic, keys, "job"), tolerance = 1e-9)
  set.seed(7)
  draw <- function(n) {
    data.frame(
      town = sample(sprintf("t%02d", 1:60), n, TRUE), sex = sample(c("f", "m"), n, TRUE),
      job = sample(c("cook", "smith", "weaver"), n, TRUE, c(0.7, 0.2, 0.1))
    )
  }
  original <- draw(200)
  released <- draw(150)
  theirs <- by_synthpop(original, released, c("town", "sex"), "job")
  expect_true(all(theirs > 0)) # so that each can be seen to differ
  expect_equal(audited(original, released, c("town", "sex"), "job"), theirs, tolerance = 1e-9)
})
