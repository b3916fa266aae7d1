#include "runtime/watch/stall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

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
  if (process->state == 'T' || process->state == 't') return Condition::stopped;
  if (&slot == &board.mine()) return Condition::waiting;
  const std::chrono::nanoseconds silence = most_missed * sign_of_life_interval(board.n_expected());
  if (now_ns - slot.alive_ns.load() > silence.count()) return Condition::silent;
  if (static_cast<Activity>(slot.phase.load()) == Activity::work) return Condition::moving;
  return standstill < timeout.value ? Condition::moving : Condition::waiting;
}

bool is_evidence(const Finding& finding) noexcept {
  return finding.condition == Condition::absent || finding.condition == Condition::gone ||
         finding.condition == Condition::stopped || finding.condition == Condition::silent;
}

std::vector<Finding> select(const std::vector<Finding>& findings, auto predicate) {
  std::vector<Finding> selected;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(selected), predicate);
  return selected;
}

/// Those without whom the others cannot go on; empty if all are equally far.
std::vector<Finding> find_culprits(const std::vector<Finding>& findings) {
  if (has_evidence(findings)) return select(findings, is_evidence);
  const auto here = select(findings, [](const Finding& f) { return f.condition != Condition::left; });
  const auto by_position = [](const Finding& a, const Finding& b) { return a.position < b.position; };
  const auto [last, first] = std::minmax_element(here.begin(), here.end(), by_position);
  if (last == here.end() || last->position == first->position) return {};
  return select(here, [position = last->position](const Finding& f) { return f.position == position; });
}

std::string describe_condition(Condition condition) {
  switch (condition) {
    case Condition::absent: return "not there: it never started, or ended before it could take part";
    case Condition::gone: return "gone: the process has ended";
    case Condition::stopped: return "stopped by a signal (state T)";
    case Condition::silent: return "no sign of life: frozen, or starved of processor time";
    case Condition::waiting:
    case Condition::moving: return "alive, but furthest behind";
    case Condition::left: break;
  }
  return "left in order";
}

int rank_or_slot(const Finding& finding) { return finding.rank >= 0 ? finding.rank : finding.slot; }

std::string describe_culprit(const Finding& finding, const std::string& host) {
  if (finding.condition == Condition::absent)
    return fmt::format("  local rank {} on {}: {}\n", finding.slot, host, describe_condition(finding.condition));
  return fmt::format("  {} {} on {} (pid {}): {}, last seen in phase {}\n", finding.rank >= 0 ? "rank" : "local rank",
                     rank_or_slot(finding), host, pid_of(finding.process), describe_condition(finding.condition),
                     name(finding.phase));
}

/// "ranks 0 1 3": the alive ones that are not to blame.
std::string list_waiting(const std::vector<Finding>& findings, const std::vector<Finding>& culprits) {
  const auto waiting = select(findings, [&](const Finding& finding) {
    const bool is_culprit = std::any_of(culprits.begin(), culprits.end(),
                                        [&](const Finding& culprit) { return culprit.slot == finding.slot; });
    return !is_culprit && finding.condition != Condition::left;
  });
  std::string list = waiting.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(waiting.size(), longest_list); ++i)
    list += fmt::format(" {}", rank_or_slot(waiting[i]));
  if (waiting.size() > longest_list) list += fmt::format(" and {} more", waiting.size() - longest_list);
  return waiting.empty() ? "" : list;
}

std::string describe_standoff(const Witness& witness) {
  return fmt::format("  on {}, all processes are alive and equally far: they wait for {}\n", witness.host,
                     witness.has_other_nodes ? "a rank on another node" : "one another");
}

}  // namespace

std::vector<Finding> inspect(const Board& board, std::int64_t now_ns, core::Seconds timeout) {
  std::vector<Finding> findings;
  int index = 0;
  for (const BoardSlot& slot : board.slots()) {
    if (slot.owner.load() != 0 || index < board.n_expected())
      findings.push_back({judge(board, slot, now_ns, timeout), index, slot.rank.load(), slot.owner.load(),
                          static_cast<Activity>(slot.phase.load()), slot.position.load()});
    ++index;
  }
  return findings;
}

bool has_evidence(const std::vector<Finding>& findings) noexcept {
  return std::any_of(findings.begin(), findings.end(), is_evidence);
}

std::string describe_stall(const std::vector<Finding>& findings, const Witness& witness) {
  std::string text =
      fmt::format("error: stalled: no progress for {:g} s in phase {}\n", witness.timeout.value, name(witness.phase));
  const std::vector<Finding> culprits = find_culprits(findings);
  if (culprits.empty()) return text + describe_standoff(witness);
  for (std::size_t i = 0; i < std::min(culprits.size(), longest_list); ++i)
    text += describe_culprit(culprits[i], witness.host);
  if (culprits.size() > longest_list) text += fmt::format("  and {} more\n", culprits.size() - longest_list);
  const std::string waiting = list_waiting(findings, culprits);
  if (!waiting.empty()) text += fmt::format("  waiting for {}: {}\n", culprits.size() == 1 ? "it" : "them", waiting);
  return text;
}

}  // namespace lockstep::runtime
