#include "site/options.hpp"

#include <algorithm>

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
     "context+ "
     "cpu-freq deadline delay-boot export extra+ gpu-bind gpu-freq gres-flags mail-user mcs-label mem-bind mem-update+ "
     "network ntasks-per-tres power prefer priority profile reservation resources+ runtime+ segment+ switches "
     "tres-bind+ "
     "tres-per-task+ wckey"},
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

const Option* option_of_letter(const std::vector<Option>& options, char letter) {
  const auto found = std::ranges::find(options, letter, &Option::letter);
  return found == options.end() ? nullptr : &*found;
}

const Option* option_of_name(const std::vector<Option>& options, std::string_view name) {
  const Option* beginning = nullptr;
  int n_beginning = 0;
  for (const Option& option : options) {
    if (option.name == name) return &option;
    if (!name.empty() && option.name.starts_with(name)) {
      beginning = &option;
      ++n_beginning;
    }
  }
  return n_beginning == 1 ? beginning : nullptr;
}

/// Takes the flag that begins with words[at]; sets `at` to what comes after it.
Flag read_flag(std::span<const std::string> words, std::size_t& at, const std::vector<Option>& options, int line) {
  const std::string_view word = words[at++];
  const bool is_long = word.starts_with("--");
  const std::size_t equals = is_long ? word.find('=') : word.npos;
  const std::string_view typed = is_long ? word.substr(0, equals) : word.substr(0, 2);
  const Option* const option = is_long ? option_of_name(options, typed.substr(2)) : option_of_letter(options, word[1]);
  Flag flag{.line = line,
            .typed = std::string{typed},
            .name = option != nullptr ? option->name : std::string{typed.substr(is_long ? 2 : 1)},
            .value = {},
            .is_known = option != nullptr};
  const Takes takes = option != nullptr ? option->takes : Takes::value;
  if (is_long && equals != word.npos) {
    flag.value = std::string{word.substr(equals + 1)};
  } else if (!is_long && word.size() > 2 && takes != Takes::nothing) {
    flag.value = std::string{word.substr(2)};
  } else if (takes == Takes::value && at < words.size() && (option != nullptr || !words[at].starts_with('-'))) {
    flag.value = words[at++];
  }
  return flag;
}

}  // namespace

const std::vector<Option>& slurm_options() {
  static const std::vector<Option> options = read_groups(slurm_groups);
  return options;
}

const std::vector<Option>& qsub_options() {
  static const std::vector<Option> options = read_groups(qsub_groups);
  return options;
}

const std::vector<Option>& pbs_resources_known() {
  static const std::vector<Option> options = read_groups(resource_groups);
  return options;
}

const Option* find_option(const std::vector<Option>& options, std::string_view name) {
  const auto found = std::ranges::find(options, name, &Option::name);
  return found == options.end() ? nullptr : &*found;
}

std::span<const Relation> slurm_relations() { return relations_of_slurm; }

std::vector<Flag> read_flags(std::span<const std::string> words, const std::vector<Option>& options, int line,
                             std::size_t& n_used) {
  std::vector<Flag> flags;
  std::size_t at = 0;
  while (at < words.size() && words[at].size() >= 2 && words[at].starts_with('-') && words[at] != "--")
    flags.push_back(read_flag(words, at, options, line));
  n_used = at;
  return flags;
}

const Flag* last_of(const std::vector<Flag>& flags, std::string_view name) {
  const auto found = std::find_if(flags.rbegin(), flags.rend(), [name](const Flag& flag) { return flag.name == name; });
  return found == flags.rend() ? nullptr : &*found;
}

}  // namespace lockstep::site
