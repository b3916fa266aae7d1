#!/bin/bash -l
touch executed
for i in 1 2; do
  echo "$i"
#! error syntax error near unexpected token
fi
