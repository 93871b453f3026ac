# What R users expect of an answer: print, format, summary, as.data.frame, plot.

format.cellrisk_result <- function(x, ...) {
  x$headline
}

print.cellrisk_result <- function(x, ...) {
  cat(unlist(lapply(strsplit(x$text, "\n", fixed = TRUE)[[1]], wrap_line)), sep = "\n")
  if (!is.null(x$written)) {
    cat("\nWritten to ", x$written, ".\n", sep = "")
  }
  if (!is.null(x$entry)) {
    cat("Recorded in the ledger as entry ", x$entry, ".\n", sep = "")
  }
  invisible(x)
}

# Sentences are wrapped to the width of the console; rows of tables, which have runs of blanks, are not.
wrap_line <- function(line) {
  if (nchar(line) <= getOption("width") || grepl("  ", line, fixed = TRUE)) line else strwrap(line)
}

as.data.frame.cellrisk_result <- function(x, row.names = NULL, optional = FALSE, ...) {
  frame <- x$frame
  if (!is.null(row.names)) {
    row.names(frame) <- row.names
  }
  frame
}

summary.cellrisk_result <- function(object, ...) {
  structure(
    list(headline = object$headline, figures = key_figures(object)),
    class = "summary.cellrisk_result"
  )
}

print.summary.cellrisk_result <- function(x, ...) {
  cat(strwrap(x$headline), sep = "\n")
  cat("\n")
  print(x$figures, row.names = FALSE, ...)
  invisible(x)
}

# The few numbers that a summary shows.
key_figures <- function(object) {
  switch(class(object)[1],
    cellrisk_assessment = decision_figures(object),
    cellrisk_curve = curve_ends(object$frame),
    cellrisk_audit = beside(object$frame),
    cellrisk_release = release_figures(object),
    cellrisk_report = report_figures(object),
    object$frame
  )
}

decision_figures <- function(object) {
  found <- object$details$decision
  if (is.null(found$caused)) {
    return(object$frame)
  }
  data.frame(
    sensitive = found$sensitive,
    caused = found$caused$people,
    share = found$caused$share,
    certainty = vapply(found$certainty, function(each) each$certainty[1], 0),
    right = vapply(found$certainty, function(each) each$right[1], 0),
    ceiling = found$ceiling$even_two
  )
}

line_columns <- c("mechanism", "delta", "sensitive", "attack", "measure", "form", "weights", "certainty", "belief")

lines_of <- function(frame) {
  known <- intersect(line_columns, names(frame))
  texts <- lapply(frame[known], function(column) ifelse(is.na(column), "", as.character(column)))
  do.call(paste, c(texts, sep = "\r"))
}

curve_ends <- function(frame) {
  which_line <- lines_of(frame)
  first <- by_line(frame$epsilon, which_line, min)
  last <- by_line(frame$epsilon, which_line, max)
  kept <- frame[frame$epsilon == first | frame$epsilon == last, , drop = FALSE]
  shown <- intersect(c("mechanism", "sensitive", "measure", "form", "weights", "epsilon", "risk", "people"), names(kept))
  kept[shown]
}

by_line <- function(values, groups, what) {
  found <- vapply(split(values, groups), what, 0)
  unname(found[groups])
}

beside <- function(frame) {
  released <- frame[frame$of == "released", , drop = FALSE]
  original <- frame[frame$of == "original", , drop = FALSE]
  data.frame(
    figure = released$figure, source = released$source, released = released$value,
    original = original$value[match(released$figure, original$figure)]
  )
}

release_figures <- function(object) {
  details <- object$details
  data.frame(
    mechanism = details$mechanism$name, epsilon = details$mechanism$epsilon, delta = details$mechanism$delta,
    scale = details$mechanism$scale, counts = details$released, domain = details$domain_size
  )
}

report_figures <- function(object) {
  details <- object$details
  data.frame(
    verdict = details$verdict, mechanism = details$mechanism, epsilon = if (is.null(details$epsilon)) NA else details$epsilon,
    public = details$public
  )
}

# Pictures, with what R has at hand; each returns its answer.

plot.cellrisk_assessment <- function(x, form = "tight", ...) {
  rows <- x$frame
  rows <- rows[rows$form == if (form %in% rows$form) form else rows$form[1], , drop = FALSE]
  weights <- ifelse(is.na(rows$weights), "", paste0(", ", rows$weights))
  graphics::dotchart(
    rev(rows$risk),
    labels = rev(paste0(rows$measure, weights)),
    groups = if (length(unique(rows$sensitive)) > 1) factor(rev(rows$sensitive)),
    xlim = c(0, if (any(rows$risk > 0)) max(rows$risk) * 1.05 else 1),
    xlab = paste0("risk (", rows$form[1], ")"), ...
  )
  invisible(x)
}

plot.cellrisk_curve <- function(x, ...) {
  rows <- x$frame[!is.na(x$frame$risk), , drop = FALSE]
  if (!nrow(rows)) {
    refuse("there is no risk in this curve to draw; give measures = \"local\"")
  }
  lines <- split(rows, factor(lines_of(rows), unique(lines_of(rows))))
  epsilons <- sort(unique(rows$epsilon))
  graphics::plot(
    range(epsilons), c(0, max(rows$risk, na.rm = TRUE)),
    type = "n", log = "x", xlab = "epsilon", ylab = "risk", ...
  )
  for (place in seq_along(lines)) {
    line <- lines[[place]][order(lines[[place]]$epsilon), ]
    graphics::lines(line$epsilon, line$risk, lty = place, lwd = 2)
  }
  differing <- Filter(
    function(name) length(unique(rows[[name]])) > 1,
    intersect(line_columns, names(rows))
  )
  if (length(lines) > 1) {
    words <- vapply(lines, function(line) paste(first_values(line[differing]), collapse = ", "), "")
    graphics::legend("topright", words, lty = seq_along(lines), lwd = 2, bty = "n")
  }
  invisible(x)
}

first_values <- function(frame) {
  vapply(frame, function(column) as.character(column[1]), "")
}

plot.cellrisk_choice <- function(x, ...) {
  rows <- x$frame
  if (!nrow(rows)) {
    refuse("no epsilon is admissible, so that there is nothing to draw")
  }
  names <- paste0(rows$mechanism, ifelse(rows$delta > 0, paste0(", delta ", signif(rows$delta, 3)), ""))
  height <- match(names, rev(unique(names)))
  old <- graphics::par(mar = c(5, 10, 4, 2) + 0.1)
  on.exit(graphics::par(old))
  graphics::plot(
    range(rows$low, rows$high), c(0.5, length(unique(names)) + 0.5),
    type = "n", log = "x", yaxt = "n", xlab = "epsilon: what is admissible", ylab = "", ...
  )
  graphics::axis(2, at = seq_along(unique(names)), labels = rev(unique(names)), las = 1)
  graphics::segments(rows$low, height, rows$high, height, lwd = 6)
  if (!is.null(x$details$epsilon)) {
    graphics::abline(v = x$details$epsilon, lty = 2)
  }
  invisible(x)
}

plot.cellrisk_audit <- function(x, ...) {
  rows <- beside(x$frame)
  shares <- rows[rows$figure %in% share_figures & !is.na(rows$released), , drop = FALSE]
  shares <- shares[rev(seq_len(nrow(shares))), , drop = FALSE]
  graphics::dotchart(
    shares$released,
    labels = shares$figure, xlim = c(0, 1), pch = 19,
    xlab = "share: released (filled), original (open)", ...
  )
  graphics::points(shares$original, seq_len(nrow(shares)), pch = 1)
  invisible(x)
}

share_figures <- c(
  "homogeneity_tight_records", "homogeneity_exact_records", "plurality", "proportional", "disco", "dis", "repu", "tcap",
  "cap", "zero_cap", "prosecutor", "marketer"
)

plot.cellrisk_release <- function(x, ...) {
  sensitive <- x$frame[[x$details$sensitive]]
  sensitive <- factor(ifelse(is.na(sensitive), "(missing)", sensitive))
  totals <- vapply(split(x$frame[[x$details$count]], sensitive), sum, 0)
  graphics::barplot(totals, ylab = "released counts, added up", xlab = x$details$sensitive, ...)
  invisible(x)
}

plot.cellrisk_report <- function(x, ...) {
  refuse("a report has no picture of its own; open its file, ", x$written)
}
