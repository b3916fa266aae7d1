#include "site/options.hpp"

#include <algorithm>

#include "site/text.hpp"

namespace lockstep::site {
namespace {

struct Group {
  Takes takes;
  bool is_of_sbatch;
  bool is_of_srun;
  std::string_view options;  ///< letter, if it has one, colon, name
};

// The table of Slurm 25.11 (src/common/slurm_opt.c), and what older ones had.
constexpr Group slurm_groups[]{
    {Takes::nothing, true, true,
     "O:overcommit Q:quiet h:help H:hold s:oversubscribe v:verbose V:version :consolidate-segments :contiguous "
     ":parsable :reboot :spread-job :spread-segments :stepmgr :test-only :usage :use-min-nodes :share"},
    {Takes::nothing, true, false, "W:wait :external :ignore-pbs :no-requeue"},
    {Takes::nothing, false, true,
     "X:disable-status l:label Z:no-allocate E:preserve-env u:unbuffered :async :debugger-test :exact :interactive "
     ":multi-prog :quit-on-interrupt :wait-for-children :whole"},
    {Takes::maybe, true, true, "k:no-kill :exclusive :nice :oom-kill-step :propagate :resv-ports"},
    {Takes::maybe, true, false, ":requeue :get-user-env"},
    {Takes::maybe, false, true,
     "I:immediate K:kill-on-bad-exit :bcast :compress :external-launcher :overlap :pty :send-libs :x11"},
    {Takes::value, true, true,
     "A:account b:begin D:chdir M:clusters C:constraint S:core-spec c:cpus-per-task d:dependency m:distribution "
     "e:error x:exclude B:extra-node-info G:gpus i:input J:job-name L:licenses F:nodefile w:nodelist N:nodes n:ntasks "
     "o:output p:partition q:qos t:time :acctg-freq :autocomplete :bb :bbf :cluster :cluster-constraint :comment "
     ":container :container-id :context :cores-per-socket :cpu-freq :cpus-per-gpu :deadline :delay-boot :export :extra "
     ":gpu-bind :gpu-freq :gpus-per-node :gpus-per-socket :gpus-per-task :gres :gres-flags :hint :mail-type "
     ":mail-user :mcs-label :mem :mem-bind :mem-per-cpu :mem-per-gpu :mem-update :mincpus :network :ntasks-per-core "
     ":ntasks-per-gpu :ntasks-per-node :ntasks-per-socket :ntasks-per-tres :open-mode :power :prefer :priority "
     ":profile :reservation :resources :runtime :segment :signal :sockets-per-node :switches :tasks-per-node "
     ":thread-spec :threads-per-core :time-min :tmp :tres-bind :tres-per-task :wckey :workdir"},
    {Takes::value, true, false, "a:array :batch :export-file :gid :kill-on-invalid-dep :uid :wait-all-nodes :wrap"},
    {Takes::value, false, true,
     "r:relative T:threads :accel-bind :bcast-exclude :cpu-bind :cpu_bind :epilog :het-group :ignore-signals :jobid "
     ":mpi :msg-timeout :pack-group :prolog :slurmd-debug :task-epilog :task-prolog :treewidth"},
};

// man qsub of OpenPBS 23.
constexpr Group qsub_groups[]{
    {Takes::nothing, false, false, "f: G: h: I: V: X: z:"},
    {Takes::value, false, false, "a: A: c: C: e: j: J: k: l: m: M: N: o: p: P: q: r: R: S: u: v: W:"},
};

std::vector<Option> read_groups(std::span<const Group> groups) {
  std::vector<Option> options;
  for (const Group& group : groups) {
    for (const std::string_view word : split_words(group.options)) {
      const std::size_t colon = word.find(':');
      const char letter = colon > 0 ? word.front() : '\0';
      const std::string_view name = word.size() > colon + 1 ? word.substr(colon + 1) : word.substr(0, 1);
      options.push_back({std::string{name}, letter, group.takes, group.is_of_sbatch, group.is_of_srun});
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
