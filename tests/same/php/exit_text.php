<?php
exit("text\n");
