a=$RANDOM$RANDOM; b=$(bash -c 'echo $RANDOM$RANDOM')
[ "$a" != "$b" ] && echo differs
