#include "runtime/watch/stall.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>

namespace lockstep::runtime {
namespace {

constexpr int most_missed = 40;           // signs of life: 2 s
constexpr std::size_t longest_list = 16;  // of names in a message

Condition judge(const Board& board, const BoardSlot& slot, std::int64_t now_ns, core::Seconds timeout) {
  if (slot.owner.load() == 0) return Condition::absent;
  const auto standstill = static_cast<double>(now_ns - slot.moved_ns.load()) * 1e-9;
  if (slot.left.load() != 0) return standstill < timeout.value ? Condition::moving : Condition::left;
  const auto process = find_owner(slot);
  if (!process) return Condition::gone;
  if (is_standing_still(process->state)) return Condition::stopped;
  if (&slot == &board.mine()) return Condition::waiting;
  const std::chrono::nanoseconds silence = most_missed * sign_of_life_interval(board.n_expected());
  if (now_ns - slot.alive_ns.load() > silence.count()) return Condition::silent;
  if (static_cast<Activity>(slot.phase.load()) == Activity::work) return Condition::moving;
  return standstill < timeout.value ? Condition::moving : Condition::waiting;
}

bool is_evidence(const Finding& finding) noexcept {
  return finding.condition == Condition::absent || finding.condition == Condition::gone ||
         finding.condition == Condition::stopped || finding.condition == Condition::silent ||
         finding.condition == Condition::unread;
}

std::vector<Finding> select(const std::vector<Finding>& findings, auto predicate) {
  std::vector<Finding> selected;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(selected), predicate);
  return selected;
}

bool waits_for_nobody(const Finding& finding) noexcept { return finding.wait == Wait::nothing; }

/// Returns the processes without which the others cannot continue; empty if all are at the same point, and all wait or
/// none is known to wait.
std::vector<Finding> find_culprits(const std::vector<Finding>& findings) {
  if (has_evidence(findings)) return select(findings, is_evidence);
  const auto here = select(findings, [](const Finding& f) { return f.condition != Condition::left; });
  const auto by_position = [](const Finding& a, const Finding& b) { return a.position < b.position; };
  const auto [last, first] = std::minmax_element(here.begin(), here.end(), by_position);
  if (last == here.end()) return {};
  const auto behind = select(here, [position = last->position](const Finding& f) { return f.position == position; });
  const auto idle = select(behind, waits_for_nobody);
  if (!idle.empty() && !std::all_of(here.begin(), here.end(), waits_for_nobody)) return idle;
  return last->position == first->position ? std::vector<Finding>{} : behind;
}

std::string describe_wait(const Finding& finding) {
  switch (finding.wait) {
    case Wait::gradients: return "the gradients of all ranks of the node";
    case Wait::norms: return "the norms of other ranks";
    case Wait::parameters: return "the update by other ranks";
    case Wait::bucket: return fmt::format("all-reduce bucket {}", finding.wait_number);
    case Wait::agreement: return "the agreement of all ranks";
    case Wait::nothing: break;
  }
  return "";
}

std::string describe_condition(const Finding& finding, bool are_others_waiting) {
  switch (finding.condition) {
    case Condition::absent: return "not there: it never started, or ended before it could take part";
    case Condition::gone: return "gone: the process has ended";
    case Condition::stopped: return "stopped by a signal (state T)";
    case Condition::silent: return "no sign of life: frozen, or starved of processor time";
    case Condition::unread: return "alive, but nobody reads its output";
    case Condition::waiting:
    case Condition::moving:
      return waits_for_nobody(finding) && are_others_waiting ? "alive, and waits for nobody"
                                                             : "alive, but furthest behind";
    case Condition::left: break;
  }
  return "ended normally";
}

int rank_or_slot(const Finding& finding) { return finding.rank >= 0 ? finding.rank : finding.slot; }

std::string describe_culprit(const Finding& finding, bool are_others_waiting) {
  const std::string condition = describe_condition(finding, are_others_waiting);
  if (finding.condition == Condition::absent)
    return fmt::format("  local rank {} on {}: {}\n", finding.slot, finding.host, condition);
  return fmt::format("  {} {} on {} (pid {}): {}, last seen in {}\n", finding.rank >= 0 ? "rank" : "local rank",
                     rank_or_slot(finding), finding.host, pid_of(finding.process), condition, describe_place(finding));
}

/// Returns the processes that are alive and not to blame.
std::vector<Finding> find_waiting(const std::vector<Finding>& findings, const std::vector<Finding>& culprits) {
  return select(findings, [&](const Finding& finding) {
    const bool is_culprit = std::any_of(culprits.begin(), culprits.end(), [&](const Finding& culprit) {
      return culprit.host == finding.host && culprit.slot == finding.slot;
    });
    return !is_culprit && finding.condition != Condition::left;
  });
}

/// "ranks 0 1 3", and their place if that is known and the same for all: "ranks 0 1 3, in phase training, step 40".
std::string list_waiting(const std::vector<Finding>& waiting) {
  std::string list = waiting.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(waiting.size(), longest_list); ++i)
    list += fmt::format(" {}", rank_or_slot(waiting[i]));
  if (waiting.size() > longest_list) list += fmt::format(" and {} more", waiting.size() - longest_list);
  const std::string place = describe_place(waiting.front());
  const bool is_same = std::all_of(waiting.begin(), waiting.end(),
                                   [&](const Finding& finding) { return describe_place(finding) == place; });
  return is_same && waiting.front().unit > 0 ? fmt::format("{}, in {}", list, place) : list;
}

/// `findings` may come from several nodes; a rank without a finding is on a node that is gone.
std::string describe_standoff(const std::vector<Finding>& findings, const Witness& witness) {
  std::set<std::string> hosts;
  for (const Finding& finding : findings) hosts.insert(finding.host);
  if (hosts.size() > 1 && static_cast<int>(findings.size()) == witness.n_ranks)
    return fmt::format("  on all {} nodes, all processes are alive and at the same point: they wait for one another\n",
                       hosts.size());
  const std::string where = hosts.size() > 1 ? fmt::format("{} nodes", hosts.size()) : witness.host;
  return fmt::format("  on {}, all processes are alive and at the same point: they wait for {}\n", where,
                     witness.has_other_nodes ? "a rank on another node" : "one another");
}

}  // namespace

void Silence::look(std::span<const BoardSlot> slots, std::int64_t gap_ns) {
  longest_ns_ = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].owner.load(std::memory_order_relaxed) == 0 || slots[i].left.load() != 0) continue;
    if (heard_.size() <= i) heard_.resize(i + 1);
    const std::int64_t alive_ns = slots[i].alive_ns.load(std::memory_order_relaxed);
    heard_[i].silence_ns = alive_ns == heard_[i].alive_ns ? heard_[i].silence_ns + gap_ns : 0;
    heard_[i].alive_ns = alive_ns;
    longest_ns_ = std::max(longest_ns_, heard_[i].silence_ns);
  }
}

std::string_view name(Activity phase) noexcept {
  constexpr std::array<std::string_view, 11> names{
      "init", "setup", "warmup", "timing", "verification", "finish", "training", "evaluation", "save", "work", "left"};
  const auto index = static_cast<std::size_t>(phase);
  return index < names.size() ? names[index] : "unknown";
}

std::string describe_place(const Finding& finding) {
  std::string place = fmt::format("phase {}", name(finding.phase));
  if (finding.unit > 0)
    place += fmt::format(", {} {}", finding.phase == Activity::training ? "step" : "batch", finding.unit);
  if (finding.wait != Wait::nothing) place += ", " + describe_wait(finding);
  return place;
}

Finding read_slot(const BoardSlot& slot, Condition condition, const std::string& host, int index) {
  const std::uint64_t wait = slot.wait.load();
  return {.condition = condition,
          .host = host,
          .slot = index,
          .rank = slot.rank.load(),
          .process = slot.owner.load(),
          .phase = static_cast<Activity>(slot.phase.load()),
          .position = slot.position.load(),
          .unit = slot.unit.load(),
          .wait = static_cast<Wait>(wait >> 32),
          .wait_number = static_cast<std::uint32_t>(wait)};
}

std::vector<Finding> inspect(const Board& board, const std::string& host, std::int64_t now_ns, core::Seconds timeout) {
  std::vector<Finding> findings;
  int index = 0;
  for (const BoardSlot& slot : board.slots()) {
    if (slot.owner.load() != 0 || index < board.n_expected())
      findings.push_back(read_slot(slot, judge(board, slot, now_ns, timeout), host, index));
    ++index;
  }
  return findings;
}

void find_unread_output(std::vector<Finding>& findings) {
  for (Finding& finding : findings)
    if (finding.condition == Condition::waiting && has_unread_output(pid_of(finding.process)))
      finding.condition = Condition::unread;
}

std::string find_speaker(const std::vector<Finding>& findings) {
  const std::vector<Finding> culprits = find_culprits(findings);
  const auto by_host = [](const Finding& a, const Finding& b) { return a.host < b.host; };
  if (!culprits.empty()) return std::min_element(culprits.begin(), culprits.end(), by_host)->host;
  return findings.empty() ? "" : std::min_element(findings.begin(), findings.end(), by_host)->host;
}

bool has_evidence(const std::vector<Finding>& findings) noexcept {
  return std::any_of(findings.begin(), findings.end(), is_evidence);
}

std::string describe_stall(const std::vector<Finding>& findings, const Witness& witness) {
  std::string text =
      fmt::format("error: stalled: no progress for {:g} s in phase {}\n", witness.timeout.value, name(witness.phase));
  const std::vector<Finding> culprits = find_culprits(findings);
  if (culprits.empty()) return text + describe_standoff(findings, witness);
  const std::vector<Finding> waiting = find_waiting(findings, culprits);
  const bool is_waiting = !std::all_of(waiting.begin(), waiting.end(), waits_for_nobody);
  for (std::size_t i = 0; i < std::min(culprits.size(), longest_list); ++i)
    text += describe_culprit(culprits[i], is_waiting);
  if (culprits.size() > longest_list) text += fmt::format("  and {} more\n", culprits.size() - longest_list);
  if (!waiting.empty())
    text += fmt::format("  waiting for {}: {}\n", culprits.size() == 1 ? "it" : "them", list_waiting(waiting));
  return text;
}

std::string describe_alone(const Finding& mine, core::Seconds timeout) {
  return fmt::format("error: stalled: no progress for {:g} s in {}\n  {}on {} (pid {}){}\n", timeout.value,
                     describe_place(mine), mine.rank >= 0 ? fmt::format("rank {} ", mine.rank) : "", mine.host,
                     getpid(), has_unread_output(getpid()) ? ": nobody reads its output" : "");
}

}  // namespace lockstep::runtime
