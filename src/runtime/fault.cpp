#include "runtime/fault.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/flags.hpp"
#include "core/log.hpp"
#include "core/suggest.hpp"
#include "core/timer.hpp"

namespace lockstep::runtime {

/// A row of the table of all faults.
struct FaultKind {
  enum class Does { signal, late, io, flip, delay, wrong, move };
  std::string_view name;
  std::string_view arguments;  ///< as shown by --help and messages
  unsigned takers;             ///< bits of FaultTaker
  Does does;
  int signal;
  std::string_view summary;
};

namespace {

using Does = FaultKind::Does;

constexpr unsigned of_reduce_all = static_cast<unsigned>(FaultTaker::reduce_all);
constexpr unsigned of_train = static_cast<unsigned>(FaultTaker::train);
constexpr unsigned of_shard = static_cast<unsigned>(FaultTaker::shard);
constexpr unsigned of_all = of_reduce_all | of_train | of_shard;
constexpr std::string_view at_place = "RANK:PHASE[:N]";

constexpr std::array<FaultKind, 13> kinds{{
    {"stop", at_place, of_all, Does::signal, SIGSTOP, "is stopped, as by a debugger (SIGSTOP)"},
    {"kill", at_place, of_all, Does::signal, SIGKILL, "is killed, as when memory runs out (SIGKILL)"},
    {"segv", at_place, of_all, Does::signal, SIGSEGV, "crashes (SIGSEGV)"},
    {"term", at_place, of_all, Does::signal, SIGTERM, "gets SIGTERM, as from a batch system"},
    {"int", at_place, of_all, Does::signal, SIGINT, "gets SIGINT, as from Ctrl-C"},
    {"hup", at_place, of_train | of_shard, Does::signal, SIGHUP, "gets SIGHUP, as from a lost terminal"},
    {"usr2", at_place, of_train | of_shard, Does::signal, SIGUSR2, "gets SIGUSR2, as from some batch systems"},
    {"late", "RANK:PHASE[:N]:TIME", of_all, Does::late, 0, "waits for TIME: 500ms, 3s, 1h"},
    {"io", "RANK:write|sync[:N[:TIMES]]", of_train | of_shard, Does::io, 0,
     "fails to write, from the Nth write on, TIMES times (1)"},
    {"flip", "PARAMETER:RANK:STEP", of_train, Does::flip, 0, "gets a flipped bit in PARAMETER before STEP"},
    {"delay", "RANK:PHASE:PERCENT", of_reduce_all | of_train, Does::delay, 0, "takes PERCENT longer in PHASE"},
    {"wrong", "RANK[:INDEX]", of_reduce_all, Does::wrong, 0, "gets a flipped bit in that element of a verified output"},
    {"move", "N", of_reduce_all, Does::move, 0, "(no rank) cores appear to move at every Nth measurement of them"},
}};

/// Places of faults, and which programs reach them. Places with numbers have a `unit`; elsewhere N counts the times.
struct FaultPlace {
  std::string_view name;
  unsigned takers;
  std::string_view unit = "";
};
constexpr std::array<FaultPlace, 13> places{{{"init", of_all},
                                             {"work", of_train | of_shard},
                                             {"setup", of_reduce_all | of_train},
                                             {"warmup", of_reduce_all},
                                             {"timing", of_reduce_all},
                                             {"verification", of_reduce_all},
                                             {"training", of_train, "step"},
                                             {"evaluation", of_train, "batch"},
                                             {"save", of_train},
                                             {"write", of_train | of_shard},
                                             {"sync", of_train | of_shard},
                                             {"finish", of_all},
                                             {"left", of_all}}};

/// Phases for `delay`: timed calls of reduce_all, or a phase of training that its report lists.
constexpr std::array<FaultPlace, 7> timed_phases{{{"timing", of_reduce_all},
                                                  {"data_wait", of_train},
                                                  {"forward", of_train},
                                                  {"backward", of_train},
                                                  {"optimizer", of_train},
                                                  {"evaluation", of_train},
                                                  {"save", of_train}}};

bool takes(unsigned takers, FaultTaker taker) noexcept { return (takers & static_cast<unsigned>(taker)) != 0; }

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return parts;
}

/// Reads one fault: its arguments one after another.
class Reader {
 public:
  Reader(std::string_view text, FaultTaker taker) : text_{text}, taker_{taker}, words_{split(text, ':')} {}

  Fault read();

 private:
  [[noreturn]] void fail(const std::string& why = "") const;
  [[nodiscard]] bool has_more() const noexcept { return next_ < words_.size(); }
  [[nodiscard]] std::string_view take() { return has_more() ? words_[next_++] : (fail(), std::string_view{}); }
  template <class Integer>
  Integer take_number(std::string_view what, Integer least = 0);
  void take_place(Fault& fault);
  void take_count(Fault& fault, bool may_be_last);

  std::string_view text_;
  FaultTaker taker_;
  std::vector<std::string_view> words_;
  std::size_t next_ = 1;
  const FaultKind* kind_ = nullptr;
};

void Reader::fail(const std::string& why) const {
  std::vector<std::string> forms;
  for (const FaultKind& kind : kinds)
    if (takes(kind.takers, taker_) && (kind_ == nullptr || kind_ == &kind))
      forms.push_back(fmt::format("{}:{}", kind.name, kind.arguments));
  core::fail_usage({.what = fmt::format("'{}' is not a fault to inject{}", text_, why.empty() ? "" : ": " + why),
                    .where = "--inject",
                    .expected = core::join(forms, "; "),
                    .fix = ""});
}

template <class Integer>
Integer Reader::take_number(std::string_view what, Integer least) {
  const std::string_view word = take();
  Integer value{};
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc{} || end != word.data() + word.size() || value < least)
    fail(fmt::format("'{}' is not {}", word, what));
  return value;
}

void Reader::take_place(Fault& fault) {
  fault.rank = take_number<int>("a rank");
  fault.place = take();
  const Does does = kind_->does;
  std::vector<std::string> names;
  for (const FaultPlace& place : does == Does::delay ? std::span<const FaultPlace>{timed_phases} : places)
    if (takes(place.takers, taker_) && (does != Does::io || place.name == "write" || place.name == "sync"))
      names.emplace_back(place.name);
  if (std::ranges::find(names, fault.place) == names.end()) core::fail_unknown("phase", fault.place, "--inject", names);
}

/// Reads N or `each`. Unless `may_be_last`, another argument follows, so the last word is that argument.
void Reader::take_count(Fault& fault, bool may_be_last) {
  if (!has_more() || (!may_be_last && next_ + 1 == words_.size())) return;
  if (words_[next_] == "each") {
    fault.is_each = true;
    ++next_;
    return;
  }
  fault.number = take_number<std::uint64_t>("a number of at least 1, nor 'each'", 1);
}

Fault Reader::read() {
  for (const FaultKind& kind : kinds)
    if (takes(kind.takers, taker_) && kind.name == words_.front()) kind_ = &kind;
  if (kind_ == nullptr) fail();
  Fault fault{.kind = kind_, .text = std::string{text_}};
  switch (kind_->does) {
    case Does::signal:
      take_place(fault);
      take_count(fault, true);
      break;
    case Does::late:
      take_place(fault);
      take_count(fault, false);
      fault.time = core::parse_seconds(take(), "--inject");
      break;
    case Does::io:
      take_place(fault);
      fault.number = has_more() ? take_number<std::uint64_t>("a number of at least 1", 1) : 1;
      fault.amount = has_more() ? take_number<std::uint64_t>("a number of at least 1", 1) : 1;
      break;
    case Does::flip:
      fault.parameter = take();
      fault.rank = take_number<int>("a rank");
      fault.number = take_number<std::uint64_t>("a step of at least 1", 1);
      break;
    case Does::delay:
      take_place(fault);
      fault.amount = take_number<std::uint64_t>("a percentage of at least 1", 1);
      break;
    case Does::wrong:
      fault.rank = take_number<int>("a rank");
      if (has_more()) fault.number = take_number<std::uint64_t>("an index");
      break;
    case Does::move: fault.number = take_number<std::uint64_t>("a number of looks of at least 1", 1); break;
  }
  if (has_more()) fail();
  return fault;
}

void tell(const Fault& fault) { core::log_warning(fmt::format("injected: {}", fault.text)); }

}  // namespace

std::vector<Fault> parse_faults(std::string_view text, FaultTaker taker) {
  std::vector<Fault> faults;
  for (const std::string_view one : split(text, ',')) faults.push_back(Reader{one, taker}.read());
  return faults;
}

std::string fault_help(FaultTaker taker) {
  std::string text;
  for (const FaultKind& kind : kinds)
    if (takes(kind.takers, taker))
      text += fmt::format("  {:<36}{}\n", fmt::format("{}:{}", kind.name, kind.arguments), kind.summary);
  const auto list = [&](std::span<const FaultPlace> all) {
    std::vector<std::string> names;
    for (const FaultPlace& place : all)
      if (takes(place.takers, taker))
        names.push_back(place.unit.empty() ? std::string{place.name} : fmt::format("{} ({})", place.name, place.unit));
    return core::join(names);
  };
  text += fmt::format("  phases: {} (after MPI_Finalize)\n", list(places));
  const std::string timed = list(timed_phases);
  return timed.empty() ? text : text + fmt::format("  phases of delay: {}\n", timed);
}

Drill::Drill(std::vector<Fault> faults) {
  for (Fault& fault : faults) armed_.emplace_back(std::move(fault));
}

void Drill::add(std::string_view text, FaultTaker taker) {
  for (Fault& fault : parse_faults(text, taker)) armed_.emplace_back(std::move(fault));
}

std::vector<std::string> Drill::texts() const {
  std::vector<std::string> all;
  for (const Armed& armed : armed_) all.push_back(armed.fault.text);
  return all;
}

std::vector<Fault> Drill::named(std::string_view kind) const {
  std::vector<Fault> all;
  for (const Armed& armed : armed_)
    if (armed.fault.kind->name == kind) all.push_back(armed.fault);
  return all;
}

bool Drill::is_of_checks() const {
  return std::ranges::any_of(armed_, [](const Armed& armed) {
    return armed.fault.kind->does == Does::wrong || armed.fault.place == "verification";
  });
}

void Drill::require_ranks(int n_ranks) const {
  for (const Armed& armed : armed_)
    if (armed.fault.rank >= n_ranks)
      core::fail_usage({.what = fmt::format("there is no rank {} to inject a fault into", armed.fault.rank),
                        .where = fmt::format("--inject {}", armed.fault.text),
                        .expected = fmt::format("a rank from 0 to {}", n_ranks - 1),
                        .fix = ""});
}

void Drill::require_steps(std::uint64_t n_steps) const {
  for (const Armed& armed : armed_) {
    const Fault& fault = armed.fault;
    const bool names_step = fault.kind->does == Does::flip || fault.place == "training";
    if (names_step && fault.number > n_steps)
      core::fail_usage({.what = fmt::format("there is no step {} to inject a fault into", fault.number),
                        .where = fmt::format("--inject {}", fault.text),
                        .expected = fmt::format("a step from 1 to {}", n_steps),
                        .fix = ""});
  }
}

/// Whether the fault is due now. Phases with numbered places also have a begin, which is not a place of its own.
bool Drill::is_due(Armed& armed, std::uint64_t number) noexcept {
  const Fault& fault = armed.fault;
  const auto place = std::ranges::find(places, fault.place, &FaultPlace::name);
  if (!place->unit.empty() && number == 0) return false;
  const std::uint64_t now = place->unit.empty() ? ++armed.n_reached : number;
  if (fault.is_each) return ++armed.n_struck > 0;
  return (fault.number == 0 || fault.number == now) && armed.n_struck++ == 0;
}

void Drill::strike(std::string_view place, std::uint64_t number) {
  for (Armed& armed : armed_) {
    const Fault& fault = armed.fault;
    const Does does = fault.kind->does;
    const bool strikes_here = does == Does::signal || does == Does::late;
    if (!strikes_here || fault.place != place || !is_mine(armed) || !is_due(armed, number)) continue;
    tell(fault);
    if (does == Does::late)
      std::this_thread::sleep_for(std::chrono::duration<double>{fault.time.value});
    else
      kill(getpid(), fault.kind->signal);  // to the process: threads that write take no signals
  }
}

int Drill::write(std::string_view place) {
  strike(place, 0);
  bool fails = false;
  for (Armed& armed : armed_) {
    const Fault& fault = armed.fault;
    if (fault.kind->does != Does::io || fault.place != place || !is_mine(armed)) continue;
    const std::uint64_t now = ++armed.n_reached;
    if (now < fault.number || now - fault.number >= fault.amount) continue;
    if (armed.n_struck++ == 0) tell(fault);
    fails = true;
  }
  return fails ? EIO : 0;
}

std::vector<std::string> Drill::take_flips(std::uint64_t step) {
  std::vector<std::string> names;
  for (Armed& armed : armed_) {
    if (armed.fault.kind->does != Does::flip || !is_mine(armed) || armed.fault.number != step) continue;
    if (armed.n_struck++ > 0) continue;
    tell(armed.fault);
    names.push_back(armed.fault.parameter);
  }
  return names;
}

std::optional<std::size_t> Drill::take_wrong(std::size_t n_elements) {
  for (Armed& armed : armed_) {
    if (armed.fault.kind->does != Does::wrong || !is_mine(armed) || armed.fault.number >= n_elements) continue;
    if (armed.n_struck++ > 0) continue;
    tell(armed.fault);
    return armed.fault.number;
  }
  return std::nullopt;
}

double Drill::distance(double measured_ns) {
  for (Armed& armed : armed_) {
    if (armed.fault.kind->does != Does::move) continue;
    return armed.n_struck++ / armed.fault.number % 2 == 0 ? 100 : 400;
  }
  return measured_ns;
}

void Drill::slow_down(std::string_view timed, core::Seconds time) {
  for (Armed& armed : armed_) {
    if (armed.fault.kind->does != Does::delay || armed.fault.place != timed || !is_mine(armed)) continue;
    if (armed.n_struck++ == 0) tell(armed.fault);
    const double more_s = time.value * static_cast<double>(armed.fault.amount) / 100;
    const core::Stopwatch watch;
    while (watch.elapsed().value < more_s) {
    }
  }
}

std::vector<std::string> Drill::unreached() const {
  std::vector<std::string> all;
  for (const Armed& armed : armed_)
    if (is_mine(armed) && armed.n_struck.load() == 0) all.push_back(armed.fault.text);
  return all;
}

}  // namespace lockstep::runtime
