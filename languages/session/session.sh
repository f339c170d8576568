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
# Values that the calls of a session share, whatever their language: `hotcell_var set NAME TEXT`, `json NAME JSON`, `get NAME`, `unset NAME`,
# `list`. A text is printed as it is, all else as JSON.
hotcell_var() {
    local kept=${__hotcell_stdin%/stdin}-vars name=${2-} text LC_ALL=C.UTF-8
    if [[ $1 == list ]]; then
        for text in "$kept"/*; do
            [[ $text == *'/*' || $text == *'~' ]] || builtin printf '%s\n' "${text##*/}"
        done
        return
    fi
    [[ $name =~ ^[A-Za-z_][A-Za-z0-9_.-]{0,63}$ ]] || { builtin printf 'hotcell_var: not a name for a value: %s\n' "$name" >&2; return 2; }
    case $1 in
    get)
        [[ -f $kept/$name ]] || return 1
        text=$(<"$kept/$name")
        if [[ $text == '"'*'"' ]]; then
            text=${text:1:-1}
            text=${text//'\/'//}
            builtin printf '%b\n' "${text//'\"'/'"'}"
        else
            builtin printf '%s\n' "$text"
        fi ;;
    set | json)
        text=${3-}
        if [[ $1 == set ]]; then
            text=${text//\\/\\\\} text=${text//\"/\\\"} text=${text//$'\n'/\\n} text=${text//$'\t'/\\t} text=${text//$'\r'/\\r}
            text="\"$text\""
        fi
        ((${#text} <= 1 << 20)) || { builtin printf 'hotcell_var: a value has 1 MiB at most; write it to a file\n' >&2; return 2; }
        command mkdir -p "$kept" && builtin printf '%s' "$text" >"$kept/$name~" && command mv "$kept/$name~" "$kept/$name" ;;
    unset) command rm -f "$kept/$name" ;;
    *) builtin printf 'hotcell_var: get, set, json, unset or list\n' >&2; return 2 ;;
    esac
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
