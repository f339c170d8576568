# What a value of R is as text: JSON if it is that, else as it is printed. And values that the calls of a session share.

# As JSON, or NULL for what JSON has not. Missing values are null if that is all the same.
json <- function(x, missing = FALSE) {
    quoted <- function(text) {
        text <- enc2utf8(text)
        text <- gsub("\\", "\\\\", text, fixed = TRUE)
        text <- gsub("\"", "\\\"", text, fixed = TRUE)
        for (pair in list(c("\n", "\\n"), c("\r", "\\r"), c("\t", "\\t"))) text <- gsub(pair[1], pair[2], text, fixed = TRUE)
        ifelse(grepl("[[:cntrl:]]", text), NA, paste0("\"", text, "\""))
    }
    joined <- function(parts) {
        if (is.null(names(x))) return(paste0("[", paste(parts, collapse = ", "), "]"))
        paste0("{", paste0(quoted(names(x)), ": ", parts, collapse = ", "), "}")
    }
    if (is.null(x)) return("null")
    if (missing && is.factor(x)) x <- as.character(x)
    if (missing && is.data.frame(x)) x <- lapply(seq_len(nrow(x)), function(row) lapply(x, `[[`, row))
    if (is.object(x) || !is.null(dim(x)) || length(x) > 10000) return(NULL)
    if (is.list(x)) {
        parts <- lapply(x, json, missing)
        if (any(vapply(parts, is.null, NA))) return(NULL)
        return(joined(unlist(parts)))
    }
    if (is.logical(x)) {
        parts <- ifelse(x, "true", "false")
    } else if (is.numeric(x)) {
        parts <- ifelse(is.finite(x), trimws(formatC(x, digits = 15, format = "g")), NA)
    } else if (is.character(x)) {
        parts <- ifelse(is.na(x), NA, quoted(x))
    } else {
        return(NULL)
    }
    if (!missing && anyNA(parts)) return(NULL)
    parts[is.na(parts)] <- "null"
    if (length(x) == 1L && is.null(names(x))) parts else joined(parts)
}

# The value behind a JSON text. An array of one kind of simple values is a vector, any other a list.
unjson <- function(text) {
    pattern <- "\"(?:[^\"\\\\]|\\\\.)*\"|-?[0-9][0-9.eE+-]*|true|false|null|[][{}:,]"
    tokens <- regmatches(text, gregexpr(pattern, text, perl = TRUE))[[1]]
    at <- 0L
    take <- function() {
        at <<- at + 1L
        if (at > length(tokens)) stop("this is no JSON", call. = FALSE)
        tokens[[at]]
    }
    unquoted <- function(token) {
        inner <- substr(token, 2L, nchar(token) - 1L)
        if (!grepl("\\", inner, fixed = TRUE)) return(inner)
        eval(parse(text = paste0("\"", gsub("\\/", "/", inner, fixed = TRUE), "\""), keep.source = FALSE)[[1]])
    }
    value <- function(token = take()) {
        switch(token, null = NULL, true = TRUE, false = FALSE,
            "[" = {
                parts <- list()
                while ((token <- take()) != "]") if (token != ",") parts[length(parts) + 1L] <- list(value(token))
                kinds <- unique(vapply(parts, function(part) if (length(part) == 1L && is.atomic(part)) class(part)[1] else "", ""))
                if (length(kinds) == 1L && kinds != "") unlist(parts) else parts
            },
            "{" = {
                parts <- list()
                while ((token <- take()) != "}") if (token != ",") {
                    take()
                    parts[unquoted(token)] <- list(value())
                }
                parts
            },
            if (startsWith(token, "\"")) unquoted(token) else as.numeric(token))
    }
    value()
}

form <- function(x) {
    text <- tryCatch(json(x), error = function(error) NULL)
    if (is.null(text) || nchar(text) > 16000L) paste(utils::capture.output(print(x)), collapse = "\n") else text
}

vars <- function(folder) structure(list(folder = folder), class = "hotcell_vars")

place <- function(x, name) {
    if (!grepl("^[A-Za-z_][A-Za-z0-9_.-]{0,63}$", name)) stop("not a name for a value: ", name, call. = FALSE)
    file.path(unclass(x)$folder, name)
}

methods <- list(
    names = function(x) sort(grep("~$", list.files(unclass(x)$folder), value = TRUE, invert = TRUE)),
    length = function(x) length(names(x)),
    `[[` = function(x, name) {
        path <- place(x, name)
        if (file.exists(path)) unjson(paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n"))
    },
    `[[<-` = function(x, name, value) {
        path <- place(x, name)
        if (is.null(value)) {
            unlink(path)
            return(x)
        }
        text <- json(value, missing = TRUE)
        if (is.null(text)) stop("JSON has no such value", call. = FALSE)
        if (nchar(text, "bytes") > 1048576) stop("a value has 1 MiB at most; write it to a file", call. = FALSE)
        dir.create(dirname(path), showWarnings = FALSE)
        file <- file(paste0(path, "~"), "wb")
        writeBin(charToRaw(enc2utf8(text)), file)
        close(file)
        file.rename(paste0(path, "~"), path)
        x
    },
    as.list = function(x, ...) sapply(names(x), function(name) x[[name]], simplify = FALSE),
    print = function(x, ...) utils::str(as.list(x))
)
methods$`$` <- methods$`[[`
methods$`$<-` <- methods$`[[<-`
for (name in names(methods)) registerS3method(name, "hotcell_vars", methods[[name]], envir = baseenv())

# Keeps the value of the last expression of a program that has run to its end, if it is JSON: R prints it anyway. Called by the first line of
# the program.
keep <- function(folder, program) {
    parsed <- parse(program, keep.source = FALSE)
    ran <- 0L
    addTaskCallback(function(expr, value, ok, visible) {
        if (ran == 0L && !identical(expr, parsed[[1]])) ran <<- 1L
        ran <<- ran + 1L
        if (ran == length(parsed) && visible && !is.null(value)) {
            text <- tryCatch(json(value), error = function(error) NULL)
            if (!is.null(text) && nchar(text) <= 16384L) {
                try(cat(text, file = file.path(folder, "display", "value.json")), silent = TRUE)
            }
        }
        TRUE
    })
    invisible()
}
