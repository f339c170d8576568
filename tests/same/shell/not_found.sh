no_such_command_here a b
echo $?
./no_such_file
echo $?
