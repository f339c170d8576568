#!/usr/bin/env ruby -w
x = 1
p $VERBOSE
