declare -A m=([x]=1 [y]=2); echo "${!m[@]}" | tr ' ' '\n' | sort
shopt -s nullglob; echo *.nothing; echo main.*
