# A session in R: it takes calls from a FIFO, evaluates each at the top level, and says when it is done. A call is `NUMBER BYTES INPUT\n` and
# its code, and is answered with `done NUMBER CODE BYTES\n` and the value of its last expression.
local({
    here <- getwd()
    folder <- file.path(here, ".home/.hotcell")
    calls <- fifo(file.path(folder, "calls"), "rb", blocking = TRUE)
    answers <- fifo(file.path(folder, "answers"), "wb", blocking = TRUE)
    unlink(file.path(folder, c("calls", "answers")))
    unlink(file.path(here, "main.R"))
    library <- new.env()
    sys.source(file.path(folder, "value.R"), library)
    hotcell <- list2env(get("hotcell", globalenv()))
    rm("hotcell", envir = globalenv())
    hotcell$vars <- library$vars(file.path(folder, "vars"))
    attach(list(hotcell = hotcell), name = "hotcell", warn.conflicts = FALSE)

    # The end of a call, and not of the session.
    leave <- function(status) stop(structure(class = c("hotcell_exit", "condition"), list(message = "", call = NULL, status = status)))
    end <- base::quit
    attached <- as.environment("hotcell")
    attached$quit <- attached$q <- function(save = "no", status = 0, runLast = TRUE) leave(status)

    # R cannot open another file in the place of its own input.
    given <- file.path(folder, "stdin")
    input <- function(has_input) {
        for (name in c("file", "stdin")) if (exists(name, attached, inherits = FALSE)) rm(list = name, envir = attached)
        if (!has_input) return()
        opened <- base::file(given, "r")
        unlink(given)
        attached$stdin <- function() opened
        attached$file <- function(description = "", ...) if (identical(description, "stdin")) opened else base::file(description, ...)
    }

    read <- function(size) {
        code <- raw(0)
        while (length(code) < size) {
            piece <- readBin(calls, "raw", size - length(code))
            if (!length(piece)) end("no", 0, FALSE)
            code <- c(code, piece)
        }
        code <- rawToChar(code)
        Encoding(code) <- "UTF-8"
        code
    }
    said <- function(prefix, condition) {
        call <- conditionCall(condition)
        # Frames of ours are none of the program's.
        own <- is.null(call) || as.character(call[[1]])[1] %in% c("eval", "parse", "withVisible", "doTryCatch")
        where <- if (own) prefix else paste0(prefix, " in ", deparse(call, nlines = 1)[1], " ")
        cat(where, ": ", conditionMessage(condition), "\n", sep = "", file = stderr())
    }
    run <- function(code, file) {
        source <- srcfilecopy(file, strsplit(code, "\n", fixed = TRUE)[[1]], isFile = TRUE)
        parsed <- parse(text = code, keep.source = TRUE, srcfile = source)
        value <- ""
        for (at in seq_along(parsed)) {
            result <- withVisible(eval(parsed[[at]], globalenv()))
            if (!result$visible) next
            # As at a prompt, but for the last, which is the value.
            if (at < length(parsed)) print(result$value)
            else if (!is.null(result$value)) value <- library$form(result$value)
        }
        value
    }
    call <- function(number, code, has_input) {
        file <- sprintf("/tmp/call-%s.R", number)
        try(cat(code, file = file), silent = TRUE)
        value <- ""
        status <- tryCatch({
            input(has_input)
            value <- allowInterrupts(withCallingHandlers(run(code, file), warning = function(warning) {
                said("Warning", warning)
                invokeRestart("muffleWarning")
            }))
            0L
        }, hotcell_exit = function(exit) as.integer(exit$status) %% 256L, interrupt = function(interrupt) {
            cat("Interrupted\n", file = stderr())
            130L
        }, error = function(error) {
            said("Error", error)
            1L
        })
        flush(stdout())
        bytes <- charToRaw(enc2utf8(if (status == 0L) value else ""))
        if (length(bytes) > 64000L) bytes <- charToRaw(paste(substr(value, 1, 16000), "..."))
        writeBin(c(charToRaw(sprintf("done %s %d %d\n", number, status, length(bytes))), bytes), answers)
        flush(answers)
    }
    # Between calls nobody is to be interrupted; what comes too late is for no other call.
    suspendInterrupts(repeat {
        line <- readLines(calls, 1L, warn = FALSE)
        if (!length(line)) end("no", 0, FALSE)
        line <- strsplit(line, " ", fixed = TRUE)[[1]]
        code <- read(as.integer(line[[2]]))
        tryCatch(allowInterrupts(NULL), interrupt = function(interrupt) NULL)
        call(line[[1]], code, line[[3]] == "1")
    })
})
