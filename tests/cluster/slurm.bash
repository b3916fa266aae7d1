#!/usr/bin/env bash
# slurm.bash BUILD [all]: runs job scripts side by side in one Slurm: the templates (a choice of them, or all), and
# events during a training.
. "$(dirname "$0")/site.bash"
. "$(dirname "$0")/made_up_gpus.bash"
. "$(dirname "$0")/templates.bash"
. "$(dirname "$0")/endless.bash"
. "$(dirname "$0")/requeue.bash"
start_site "$1" 320
install_on_gpus "$1"
begin_requeues
begin_templates "${@:2}"
begin_part installed_tests run_installed_tests
end_parts
