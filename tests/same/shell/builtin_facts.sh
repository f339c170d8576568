echo "$0 $# $- ${BASH_SOURCE[0]} ${#BASH_SOURCE[@]} $BASH_SUBSHELL $SHLVL $LINENO ${FUNCNAME[0]-none}"
f() { echo "${FUNCNAME[*]} ${BASH_LINENO[*]} ${BASH_SOURCE[*]}"; }
f
