<?php
echo $undefined; echo [1][5]; trigger_error('mine', E_USER_WARNING); echo "on\n"; error_log('logged');
