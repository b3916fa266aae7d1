"""ReFrame on this machine alone: no batch system, ranks by mpirun."""
site_configuration = {
    'systems': [{
        'name': 'here',
        'hostnames': ['.*'],
        'partitions': [{'name': 'local', 'scheduler': 'local', 'launcher': 'mpirun', 'environs': ['builtin']}],
    }],
    'environments': [{'name': 'builtin', 'cc': 'cc', 'cxx': 'c++', 'ftn': ''}],
}
