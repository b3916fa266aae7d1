"""ReFrame checks of an installed Lockstep. Set LOCKSTEP_ROOT, or let the site's configuration load its module:

    reframe -C SITE.py -c share/reframe/lockstep.py -r
    reframe -C SITE.py -c share/reframe/lockstep.py -r -S num_nodes=4 -S ranks_per_node=8 -S cores_per_rank=16 -n ReduceAll
    reframe -C SITE.py -c share/reframe/lockstep.py -r -S AsFastAsBefore.baselines=/full/path/before.json -n AsFastAsBefore

The launcher of the partition starts the ranks. There are no reference values for sites: keep yours in a subclass, or give -S
'least_busbw=GB/s'. Without one, figures are only written to ReFrame's log.
"""

import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_after, run_before, sanity_function, variable


def without_files(arguments):
    """Arguments of reduce_all but those that name files or count ranks."""
    dropped = {'-J', '--json', '--output_file', '--csv', '--junit', '--baseline', '--pool', '--expect-ranks', '--nproc', '--inject'}
    words = iter(arguments)
    return [word for word in words if not (word in dropped and [next(words, None)]) and word.split('=')[0] not in dropped]


class LockstepCheck(rfm.RunOnlyRegressionTest):
    """What all have in common: an installation, nodes and ranks."""

    num_nodes = variable(int, value=1)
    ranks_per_node = variable(int, value=2)
    cores_per_rank = variable(int, value=0)  # 0: divide the node's cores, if the site's configuration has their number
    time_limit = '20m'  # longer than any --max-time below
    valid_systems = ['*']
    valid_prog_environs = ['*']
    tags = {'production', 'maintenance'}
    maintainers = ['the site']

    @run_after('init')
    def set_ranks(self):
        self.num_tasks = self.num_nodes * self.ranks_per_node
        self.num_tasks_per_node = self.ranks_per_node

    @run_after('setup')
    def set_cores(self):
        cores = self.cores_per_rank or (self.current_partition.processor.num_cores or 0) // self.ranks_per_node
        if cores > 0:
            self.num_cpus_per_task = cores  # else Slurm gives each rank one core

    @run_before('run')
    def find_programs(self):
        if 'LOCKSTEP_ROOT' in os.environ:
            self.prerun_cmds = [f'export PATH={os.environ["LOCKSTEP_ROOT"]}/bin:$PATH']

    def expect_ranks(self):
        return ['--expect-ranks', str(self.num_tasks)]


@rfm.simple_test
class Doctor(LockstepCheck):
    """Would anything on these nodes make a job fail?"""

    executable = 'lockstep'

    @run_before('run')
    def set_arguments(self):
        self.executable_opts = ['doctor', *self.expect_ranks(), '--json', 'doctor.json']

    @sanity_function
    def has_no_complaint(self):
        return sn.assert_found(r'^\d+ checks: .* 0 would fail', self.stdout)


@rfm.simple_test
class ReduceAll(LockstepCheck):
    """Every algorithm right, and how fast the best is at the largest size."""

    executable = 'reduce_all'
    largest = variable(str, value='64M')
    least_busbw = variable(float, value=0.0)

    @run_before('run')
    def set_arguments(self):
        self.executable_opts = ['-b', '8', '-e', self.largest, '-f', '8', '--max-time', '10min', *self.expect_ranks(), '--json', 'result.json']

    @run_before('performance')
    def set_reference(self):
        if self.least_busbw > 0:
            self.reference = {'*': {'busbw': (self.least_busbw, 0, None, 'GB/s')}}

    @sanity_function
    def is_right(self):
        return sn.assert_found(r'^# Out of bounds values : 0 OK', self.stdout)

    @performance_function('GB/s')
    def busbw(self):
        with open(os.path.join(self.stagedir, 'result.json')) as file:
            rows = json.load(file)['results']
        most = max(row['bytes'] for row in rows)
        return max(row['busbw_GBps'] for row in rows if row['bytes'] == most)


@rfm.simple_test
class AsFastAsBefore(LockstepCheck):
    """Has anything become slower since `baselines` (F,F,..., of reduce_all --json on as many ranks) were measured?"""

    executable = 'reduce_all'
    baselines = variable(str, value='')
    tolerance = variable(float, value=5.0)  # percent

    @run_after('init')
    def need_baselines(self):
        self.skip_if(not self.baselines, 'no baselines are given')

    @run_before('run')
    def set_arguments(self):
        with open(self.baselines.split(',')[0]) as file:
            before = without_files(json.load(file)['meta']['arguments'])
        self.executable_opts = [*before, *self.expect_ranks(), '--baseline', self.baselines, '--tolerance', str(self.tolerance),
                                '--json', 'result.json']

    @sanity_function
    def is_as_fast(self):
        return sn.assert_found(r'^# Regression +: (?!SLOWER)', self.stdout)


@rfm.simple_test
class Train(LockstepCheck):
    """A network learns to read digits drawn from a seed, and how fast."""

    executable = 'lockstep'
    least_accuracy = variable(float, value=90.0)

    @run_before('run')
    def set_arguments(self):
        self.executable_opts = ['train', 'digits', '--synthetic-samples', '8192', '--epochs', '2', *self.expect_ranks(), '--run-dir', 'run']

    @sanity_function
    def has_learned(self):
        accuracy = sn.extractsingle(r'^evaluation .* top-1 ([0-9.]+) %', self.stdout, 1, float)
        return sn.assert_ge(accuracy, self.least_accuracy)

    @performance_function('samples/s')
    def throughput(self):
        return sn.extractsingle(r'^throughput +([0-9.]+) samples/s', self.stdout, 1, float)
