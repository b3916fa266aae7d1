#include "site/options.hpp"

#include <algorithm>
#include <array>

#include "site/text.hpp"

namespace lockstep::site {
namespace {

struct Group {
  Of of;
  Takes takes;
  Form form;
  /// Each [letter:]name; + behind one that Slurm 22.05 does not have, <VERSION=INSTEAD behind one that is gone.
  std::string_view options;
  std::string_view words = {};
};

// The table of Slurm 25.11 (src/common/slurm_opt.c), and what older ones had; forms of values: man sbatch of 22.05.
constexpr Group slurm_groups[]{
    {Of::both, Takes::nothing, Form::text,
     "O:overcommit Q:quiet h:help H:hold s:oversubscribe v:verbose V:version consolidate-segments+ contiguous parsable "
     "reboot spread-job spread-segments+ stepmgr+ test-only usage use-min-nodes share"},
    {Of::sbatch, Takes::nothing, Form::text, "W:wait external+ ignore-pbs no-requeue"},
    {Of::srun, Takes::nothing, Form::text,
     "X:disable-status l:label Z:no-allocate E:preserve-env u:unbuffered async debugger-test exact interactive "
     "multi-prog quit-on-interrupt wait-for-children whole"},
    {Of::both, Takes::maybe, Form::word, "exclusive", "user mcs topo"},
    {Of::both, Takes::maybe, Form::word, "k:no-kill", "off"},
    {Of::both, Takes::maybe, Form::list, "propagate", "ALL NONE AS CORE CPU DATA FSIZE MEMLOCK NOFILE NPROC RSS STACK"},
    {Of::both, Takes::maybe, Form::text, "nice oom-kill-step+ resv-ports"},
    {Of::sbatch, Takes::maybe, Form::text, "requeue get-user-env"},
    {Of::srun, Takes::maybe, Form::text,
     "I:immediate K:kill-on-bad-exit bcast compress external-launcher overlap pty send-libs x11"},
    {Of::both, Takes::value, Form::count,
     "c:cpus-per-task n:ntasks cores-per-socket cpus-per-gpu mincpus ntasks-per-core ntasks-per-gpu ntasks-per-node "
     "ntasks-per-socket sockets-per-node tasks-per-node threads-per-core"},
    {Of::both, Takes::value, Form::whole, "S:core-spec thread-spec"},
    {Of::both, Takes::value, Form::nodes, "N:nodes"},
    {Of::both, Takes::value, Form::gpus, "G:gpus gpus-per-node gpus-per-socket gpus-per-task"},
    {Of::both, Takes::value, Form::gres, "gres"},
    {Of::both, Takes::value, Form::memory, "mem mem-per-cpu mem-per-gpu tmp"},
    {Of::both, Takes::value, Form::time, "t:time time-min"},
    {Of::both, Takes::value, Form::path,
     "D:chdir workdir<17.11=chdir e:error i:input o:output F:nodefile bbf container"},
    {Of::both, Takes::value, Form::signal, "signal"},
    {Of::both, Takes::value, Form::dependency, "d:dependency"},
    {Of::both, Takes::value, Form::list, "mail-type",
     "NONE BEGIN END FAIL REQUEUE ALL INVALID_DEPEND STAGE_OUT TIME_LIMIT TIME_LIMIT_90 TIME_LIMIT_80 TIME_LIMIT_50 "
     "ARRAY_TASKS"},
    {Of::both, Takes::value, Form::word, "hint", "compute_bound memory_bound multithread nomultithread help"},
    {Of::both, Takes::value, Form::word, "open-mode", "append truncate"},
    {Of::both, Takes::value, Form::text,
     "A:account b:begin M:clusters C:constraint m:distribution x:exclude B:extra-node-info J:job-name L:licenses "
     "w:nodelist p:partition q:qos acctg-freq autocomplete bb cluster cluster-constraint comment container-id+ "
     "context+ cpu-freq deadline delay-boot export extra+ gpu-bind gpu-freq gres-flags mail-user mcs-label mem-bind "
     "mem-update+ network ntasks-per-tres power prefer priority profile reservation resources+ runtime+ segment+ "
     "switches tres-bind+ tres-per-task+ wckey"},
    {Of::sbatch, Takes::value, Form::array, "a:array"},
    {Of::sbatch, Takes::value, Form::word, "kill-on-invalid-dep", "yes no"},
    {Of::sbatch, Takes::value, Form::word, "wait-all-nodes", "0 1"},
    {Of::sbatch, Takes::value, Form::text, "batch export-file gid uid wrap"},
    {Of::srun, Takes::value, Form::text,
     "r:relative T:threads accel-bind bcast-exclude cpu-bind cpu_bind epilog het-group ignore-signals jobid mpi "
     "msg-timeout pack-group prolog slurmd-debug task-epilog task-prolog treewidth"},
};

// What man sbatch says of options that do not go together.
constexpr Relation relations_of_slurm[]{
    {"mem", Relates::excludes, "mem-per-cpu mem-per-gpu"},
    {"mem-per-cpu", Relates::excludes, "mem-per-gpu"},
    {"core-spec", Relates::excludes, "thread-spec"},
    {"cpus-per-task", Relates::excludes, "cpus-per-gpu"},
    {"ntasks-per-gpu", Relates::excludes, "gpus-per-task gpus-per-socket ntasks-per-node"},
    {"hint", Relates::excludes, "ntasks-per-core threads-per-core extra-node-info"},
    {"exclusive", Relates::undoes, "oversubscribe"},
    {"requeue", Relates::undoes, "no-requeue"},
    {"gpus-per-socket", Relates::needs_one_of, "sockets-per-node"},
    {"gpus-per-task", Relates::needs_one_of, "ntasks ntasks-per-node tasks-per-node gpus gres gpus-per-node"},
    {"mem-per-gpu", Relates::needs_one_of, "gpus gpus-per-node gpus-per-task gpus-per-socket gres"},
};

// man qsub of OpenPBS 23.
constexpr Group qsub_groups[]{
    {Of::qsub, Takes::nothing, Form::text, "f: G: h: I: V: X: z:"},
    {Of::qsub, Takes::value, Form::text, "a: A: c: C: l: M: N: P: q: S: u: v: W:"},
    {Of::qsub, Takes::value, Form::path, "e: o:"},
    {Of::qsub, Takes::value, Form::word, "j:", "oe eo n"},
    {Of::qsub, Takes::value, Form::letters, "k:", "oedn"},
    {Of::qsub, Takes::value, Form::letters, "m:", "abejn"},
    {Of::qsub, Takes::value, Form::array, "J:"},
    {Of::qsub, Takes::value, Form::word, "r:", "y n"},
    {Of::qsub, Takes::value, Form::text, "p: R:"},
};

constexpr Group mpi_groups[]{
    {Of::both, Takes::value, Form::text,
     "n np c N npernode npersocket ppn ppr d depth cpu-bind gpu-bind mem-bind map-by bind-to rank-by x H host hosts f "
     "hostfile machinefile hostlist output-filename wdir wd path prefix genvlist envlist launcher bootstrap iface "
     "label-by report-uri mca-file timeout pernode-list rankfile rf cpus-per-rank cpus-per-proc cpu-set cpu-list "
     "exclude-hosts env-file pmi rlimits procs net transfer-list"},
    {Of::both, Takes::two, Form::text, "mca gmca omca prtemca pmixmca genv env"},
};
constexpr Group torch_groups[]{{Of::both, Takes::nothing, Form::text, "standalone use_env no_python module m u"}};

// man pbs_resources of OpenPBS 23, and what sites of ours add [N-pbs].
constexpr Group resource_groups[]{
    {Of::host, Takes::value, Form::whole, "ncpus ngpus nmics naccelerators"},
    {Of::host, Takes::value, Form::size, "mem vmem accelerator_memory"},
    {Of::host, Takes::value, Form::text, "host vnode arch mps hbmem aoe eoe"},
    {Of::chunk, Takes::value, Form::count, "mpiprocs ompthreads"},
    {Of::chunk, Takes::value, Form::text, "gpu_type cpu_type nodetype"},
    {Of::job, Takes::value, Form::duration, "walltime cput pcput min_walltime max_walltime soft_walltime"},
    {Of::job, Takes::value, Form::size, "pmem pvmem file"},
    {Of::job, Takes::value, Form::count, "nodect"},
    {Of::job, Takes::value, Form::parts, "place", "free pack scatter vscatter excl shared exclhost group="},
    {Of::job, Takes::value, Form::text,
     "select nodes nice software preempt_targets job_priority filesystems max_run_subjobs"},
};

std::vector<Option> read_groups(std::span<const Group> groups) {
  std::vector<Option> options;
  for (const Group& group : groups) {
    for (std::string_view word : split_words(group.options)) {
      Option option{"", '\0', group.of, group.takes, group.form, group.words};
      if (const std::size_t gone = word.find('<'); gone != word.npos) {
        const auto parts = split(word.substr(gone + 1), '=');
        option.until = parts[0];
        option.instead = parts[1];
        word = word.substr(0, gone);
      }
      option.is_new = word.ends_with('+');
      if (option.is_new) word.remove_suffix(1);
      const std::size_t colon = word.find(':');
      if (colon != word.npos) option.letter = word.front();
      option.name = word.ends_with(':') ? word.substr(0, 1) : word.substr(colon + 1);  // npos + 1 is 0
      options.push_back(std::move(option));
    }
  }
  return options;
}

/// Of Slurm: of this name, or the only one that begins so.
const Option* option_of_name(std::string_view name) {
  if (const Option* const option = find_option(OptionSet::slurm, name)) return option;
  const auto& options = options_of(OptionSet::slurm);
  const auto begins_so = [name](const Option& option) { return !name.empty() && option.name.starts_with(name); };
  const auto found = std::ranges::find_if(options, begins_so);
  return std::ranges::count_if(options, begins_so) == 1 ? &*found : nullptr;
}

/// Takes the flag that begins with words[at]; sets `at` to what comes after it.
Flag read_flag(std::span<const std::string> words, std::size_t& at, OptionSet set, int line) {
  const bool takes_any_dashes = set == OptionSet::mpi || set == OptionSet::torch;
  const std::string_view word = words[at++];
  const bool is_long = takes_any_dashes || word.starts_with("--");
  const std::size_t equals = is_long ? word.find('=') : word.npos;
  const std::string_view typed = is_long ? word.substr(0, equals) : word.substr(0, 2);
  Flag flag{
      .line = line, .typed = std::string{typed}, .name = std::string{typed.substr(typed.starts_with("--") ? 2 : 1)}};
  if (set == OptionSet::torch) std::ranges::replace(flag.name, '-', '_');
  const Option* const option = !is_long                  ? find_by(options_of(set), word[1], &Option::letter)
                               : set == OptionSet::slurm ? option_of_name(flag.name)
                                                         : find_option(set, flag.name);
  flag.is_known = option != nullptr;
  if (option != nullptr) flag.name = option->name;
  const Takes takes = option != nullptr ? option->takes : set == OptionSet::mpi ? Takes::nothing : Takes::value;
  const bool has_next = at < words.size() && (option != nullptr || !words[at].starts_with('-'));
  if (equals != word.npos) {
    flag.value = std::string{word.substr(equals + 1)};
  } else if (!is_long && word.size() > 2 && takes != Takes::nothing) {
    flag.value = std::string{word.substr(2)};
  } else if (takes == Takes::two && at + 1 < words.size()) {
    flag.value = words[at] + "=" + words[at + 1];
    at += 2;
  } else if (takes == Takes::value && has_next) {
    flag.value = words[at++];
  }
  return flag;
}

}  // namespace

const std::vector<Option>& options_of(OptionSet set) {
  static const std::array all{read_groups(slurm_groups), read_groups(qsub_groups), read_groups(mpi_groups),
                              read_groups(torch_groups), read_groups(resource_groups)};
  return all[static_cast<std::size_t>(set)];
}

const Option* find_option(OptionSet set, std::string_view name) {
  return find_by(options_of(set), name, &Option::name);
}

std::span<const Relation> slurm_relations() { return relations_of_slurm; }

std::vector<Flag> read_flags(std::span<const std::string> words, OptionSet set, int line, std::size_t& n_used) {
  std::vector<Flag> flags;
  std::size_t at = 0;
  while (at < words.size() && words[at].size() >= 2 && words[at].starts_with('-') && words[at] != "--")
    flags.push_back(read_flag(words, at, set, line));
  n_used = at;
  return flags;
}

const Flag* last_of(const std::vector<Flag>& flags, std::string_view name) {
  return find_last_by(flags, name, &Flag::name);
}

}  // namespace lockstep::site
