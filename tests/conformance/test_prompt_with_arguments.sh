#!/bin/sh
# --- prompt
# description = "A message with two arguments in it"
# [parameters]
# arg1 = "First test argument"
# arg2 = "Second test argument"
# [complete]
# arg1 = ["paris", "park", "party", "test"]
# ---
echo "Prompt with arguments: arg1='$ARG_arg1', arg2='$ARG_arg2'"
