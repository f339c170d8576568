# A session for bash: it takes calls from a FIFO, sources each, and says when it is done. A call is `NUMBER BYTES INPUT\n` and its code,
# and is answered with `done NUMBER CODE 0\n`. What ends the shell ends the call: a new one takes up what was left.
__hotcell_end() {
    local code=$?
    # Not ignored: a shell that is started so could never be interrupted.
    builtin trap : INT
    [[ -z ${__hotcell_on_exit-} ]] || (eval "$__hotcell_on_exit") 2>&1
    __hotcell_on_exit=
    set +eufxv +o pipefail
    { declare -p; declare -f; } 2>/dev/null | grep -vE '^declare -[a-zA-Z-]*r[a-zA-Z]* |^declare -[a-zA-Z-]* (BASH_|FUNCNAME|PIPESTATUS|_=)' >/tmp/.hotcell-state
    __hotcell_done "$code"
    exec "$BASH" "$__hotcell_self"
}
__hotcell_done() {
    builtin printf 'done %d %d 0\n' "$__hotcell_call" "$1" >&201
}
# The end of a call is the end of its program.
trap() {
    if [[ $# -ge 2 && ( ${!#} == EXIT || ${!#} == 0 ) ]]; then
        __hotcell_on_exit=${*: -2:1}
        [[ $__hotcell_on_exit != - ]] || __hotcell_on_exit=
    else
        builtin trap "$@"
    fi
}
if [[ -e main.sh && -z ${__hotcell_self-} ]]; then
    __hotcell_self=$PWD/.home/.hotcell/session.sh __hotcell_stdin=$PWD/.home/.hotcell/stdin
    exec 200<.home/.hotcell/calls 201>.home/.hotcell/answers
    mv main.sh "$__hotcell_self"
    export -n __hotcell_self __hotcell_stdin
else
    . /tmp/.hotcell-state 2>/dev/null
fi
while IFS=' ' builtin read -r -u 200 __hotcell_call __hotcell_size __hotcell_input; do
    LC_ALL=C IFS= builtin read -r -N "$__hotcell_size" -u 200 __hotcell_code
    builtin printf '%s' "$__hotcell_code" >"/tmp/call-$__hotcell_call.sh"
    unset __hotcell_code
    builtin trap __hotcell_end EXIT
    builtin trap 'exit 130' INT
    if [[ $__hotcell_input == 1 ]]; then
        . "/tmp/call-$__hotcell_call.sh" <"$__hotcell_stdin"
    else
        . "/tmp/call-$__hotcell_call.sh" </dev/null
    fi
    __hotcell_status=$?
    builtin trap : INT
    set +eufxv +o pipefail
    [[ -z ${__hotcell_on_exit-} ]] || (eval "$__hotcell_on_exit") 2>&1
    __hotcell_on_exit=
    __hotcell_done "$__hotcell_status"
done
