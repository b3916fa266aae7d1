#!/bin/bash
#! warning not read from line 3 on
names[$(echo "]")]=3
lockstep trian toy
