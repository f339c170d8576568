<?php
echo 1;
function (
