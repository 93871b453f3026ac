# How a question gets to Python, and its answer back. Data go as CSV in memory and answers come as JSON: texts and bytes
# pass whatever the versions of reticulate and numpy. Nothing is written to disk.

state <- new.env(parent = emptyenv())

cellrisk_available <- function() {
  isTRUE(tryCatch(
    suppressWarnings(reticulate::py_module_available("cellrisk")),
    error = function(condition) FALSE
  ))
}

helper <- function() {
  if (is.null(state$helper)) {
    if (!cellrisk_available()) {
      refuse(
        "the Python package cellrisk is not found; run: pip install cellrisk, and name that Python ",
        "before anything of reticulate runs: Sys.setenv(RETICULATE_PYTHON = \"/path/to/python\")"
      )
    }
    place <- system.file("python", package = "cellrisk", mustWork = TRUE)
    state$helper <- reticulate::import_from_path("cellrisk_r", place, convert = FALSE)
  }
  state$helper
}

refuse <- function(..., kind = "invalid_input") {
  condition <- structure(
    class = c(paste0("cellrisk_", kind), "cellrisk_error", "error", "condition"),
    list(message = paste0(...), call = NULL)
  )
  stop(condition)
}

# One question: `request` is a list, `sent` the bytes that go with it, by their names in the helper.
ask <- function(question, request, sent, class) {
  request$question <- question
  request$arguments <- named(request$arguments)
  text <- enc2utf8(as.character(
    jsonlite::toJSON(request, auto_unbox = TRUE, digits = I(17), null = "null", na = "null")
  ))
  said <- do.call(helper()$answer, c(list(text), sent))
  found <- jsonlite::fromJSON(reticulate::py_to_r(said))
  if (!is.null(found$error)) {
    refuse(found$error$message, kind = found$error$kind)
  }
  structure(
    list(
      headline = found$headline,
      text = found$text,
      frame = as_frame(found$frame),
      details = jsonlite::fromJSON(found$json),
      json = found$json,
      written = found$written,
      entry = found$entry
    ),
    class = c(paste0("cellrisk_", class), "cellrisk_result")
  )
}

as_frame <- function(columns) {
  columns <- lapply(columns, function(column) if (length(column)) column else logical(0))
  as.data.frame(columns, optional = TRUE, stringsAsFactors = FALSE)
}

# What is NULL was not given; an empty list must be an object and no array.
named <- function(arguments) {
  given <- Filter(Negate(is.null), arguments)
  if (length(given) && (is.null(names(given)) || any(names(given) == ""))) {
    refuse("further arguments need their names; got one without")
  }
  if (length(given)) given else structure(list(), names = character())
}

# A list by column, whose values stay lists where they hold one label.
by_column <- function(given, argument) {
  if (is.null(given)) {
    return(NULL)
  }
  given <- as.list(given)
  if (!length(given) || is.null(names(given)) || any(names(given) == "")) {
    refuse(argument, " needs the name of a column for each entry; for example ", argument, " = list(age = ...)")
  }
  given
}

as_levels <- function(given) {
  if (is.null(given)) {
    return(NULL)
  }
  lapply(by_column(given, "levels"), function(labels) I(if (is.factor(labels)) levels(labels) else labels))
}

as_rules <- function(given) {
  if (is.null(given)) {
    return(NULL)
  }
  lapply(unname(given), function(rule) lapply(by_column(rule, "exclude"), I))
}

# An object of package ptable says in its slots whether it is for counts; its data frame alone does not.
as_perturbation <- function(given) {
  if (!isS4(given) || !methods::.hasSlot(given, "pTable")) {
    return(given)
  }
  made_for <- if (methods::.hasSlot(given, "table")) given@table else given@pParams@table
  if (!identical(as.character(made_for), "cnts")) {
    refuse("this ptable is not for counts; make one with create_cnt_ptable")
  }
  as.data.frame(given@pTable)[c("i", "j", "p")]
}

# What is to be read: the path of a file, or a data frame with the kinds of its columns.
describe_source <- function(data, argument, used = character()) {
  if (is.character(data) && length(data) == 1 && !is.na(data)) {
    return(list(path = path.expand(enc2utf8(data))))
  }
  if (!is.data.frame(data)) {
    fix <- if (isS4(data)) "; give the data frame inside it, such as extractManipData(x) or x@origData of sdcMicro" else ""
    refuse(argument, " must be a data frame or the path of a file; got ", class(data)[1], fix)
  }
  kinds <- vapply(as.list(data), kind_of, "")
  if (any(used %in% names(data)[kinds == ""])) {
    refuse(
      argument, " has columns that are neither texts, factors, numbers, truth values nor dates; got ",
      paste(used[used %in% names(data)[kinds == ""]], collapse = ", "), "; convert them"
    )
  }
  kinds <- kinds[kinds != ""]
  if (!length(kinds)) {
    refuse(argument, " must have columns of texts or numbers; got none")
  }
  list(kinds = as.list(kinds))
}

kind_of <- function(column) {
  if (inherits(column, "integer64") || !is.null(dim(column))) {
    return("")
  }
  if (is.character(column) || is.factor(column) || inherits(column, c("Date", "POSIXt"))) {
    return("text")
  }
  if (is.logical(column)) {
    return("truth")
  }
  if (!is.numeric(unclass(column)) || inherits(column, "difftime")) {
    return("")
  }
  known <- unclass(column)[!is.na(column)]
  if (is.integer(column) || all(is.finite(known) & known == round(known) & abs(known) < 2^53)) "whole" else "number"
}

# A data frame as CSV. What is NA is empty and not quoted; texts are quoted and UTF-8 whatever the locale; numbers have
# all their digits.
encode <- function(data, source) {
  if (is.null(source$kinds)) {
    return(raw(0))
  }
  kinds <- unlist(source$kinds)
  columns <- lapply(names(kinds), function(name) encode_column(data[[name]], kinds[[name]]))
  header <- paste(quote_text(names(kinds)), collapse = ",")
  rows <- if (nrow(data)) do.call(paste, c(columns, sep = ",")) else character()
  charToRaw(enc2utf8(paste0(paste(c(header, rows), collapse = "\n"), "\n")))
}

encode_column <- function(column, kind) {
  text <- switch(kind,
    text = quote_text(as.character(column)),
    truth = as.character(column),
    whole = sprintf("%.0f", as.numeric(unclass(column))),
    number = sprintf("%.17g", as.numeric(unclass(column)))
  )
  text[is.na(column)] <- ""
  text
}

quote_text <- function(text) {
  paste0("\"", gsub("\"", "\"\"", enc2utf8(text), fixed = TRUE), "\"")
}
