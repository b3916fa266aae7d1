#include "runtime/watch/watchdog.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/print.hpp"
#include "runtime/asked.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/launcher.hpp"
#include "runtime/session.hpp"
#include "runtime/watch/above.hpp"
#include "runtime/watch/board.hpp"
#include "runtime/watch/guard.hpp"
#include "runtime/watch/stall.hpp"
#include "runtime/watch/testimony.hpp"

namespace lockstep::runtime {
namespace {

using namespace std::chrono_literals;

/// A gap of more ticks means that this process itself was stopped; such a gap does not count as standstill.
constexpr int longest_gap_ticks = 4;
/// The more ranks of a node share a processor, the more slowly MPI starts, and it reports no progress.
constexpr core::Seconds start_per_shared_rank{1};
/// Time for the report to reach the terminal before the launcher, seeing the first exit, ends the job.
constexpr core::Seconds time_to_speak{0.2};
/// Time for the launcher to end the waiting ranks once the first process has left; then they leave by themselves.
constexpr core::Seconds time_for_launcher{1};
/// Time for the main thread to end normally after a signal.
constexpr std::int64_t time_for_order_ns = 700'000'000;
/// Time to act on a stall, because the file system may be what hangs.
constexpr auto time_to_act = 1s;
/// Time for the launcher to end the job once a guard has reported the death of its rank; some take seconds while MPI
/// starts or ends.
constexpr std::int64_t time_for_guards_ns = 5'000'000'000;
/// Time for the node with evidence to speak before those without.
constexpr core::Seconds time_for_other_nodes{2};

/// Returns whether `deed` finished within time_to_act; a separate thread runs it and is abandoned if not.
bool in_time(std::function<void()> deed) {
  const auto done = std::make_shared<std::promise<void>>();
  const std::future<void> is_done = done->get_future();
  std::thread{[deed = std::move(deed), done] {
    deed();
    done->set_value();
  }}.detach();
  return is_done.wait_for(time_to_act) == std::future_status::ready;
}

}  // namespace

struct Watchdog::State {
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  State(const LauncherHint& hint, core::Seconds limit, Drill* the_drill, const core::Clock& its_clock)
      : clock{its_clock},
        timeout{limit},
        drill{the_drill},
        n_local_ranks{hint.n_local_ranks.value_or(0)},
        tick{sign_of_life_interval(n_local_ranks)},
        longest_gap_ns{std::chrono::nanoseconds{longest_gap_ticks * tick}.count()},
        start_allowance{start_per_shared_rank.value * static_cast<double>(n_sharing_a_processor(hint))},
        above{hint, guard_of_rank()} {
    n_ranks.store(hint.n_ranks.value_or(0));
    alone.rank.store(hint.rank.value_or(-1));
    if (drill != nullptr) drill->set_rank(hint.rank.value_or(0));
    if (timeout.value <= 0) return;
    board = Board::join(hint);
    if (board) slot = &board->mine();
    slot->moved_ns.store(now_ns());
    start();
    outlive_guard(true);
  }

  ~State() {
    {
      const std::lock_guard lock{mutex};
      is_over = true;
    }
    wake.notify_one();
    if (thread.joinable()) {
      thread.join();
      outlive_guard(false);
      if (above.has_lost_guard()) report_lost_guard();
    }
    if (board && board->is_report_out()) leave();  // too late to end well
    slot->moved_ns.store(now_ns());                // leaving is progress: those that waited for it may not know yet
  }

  [[nodiscard]] std::int64_t now_ns() const noexcept { return std::llround(clock.now().value * 1e9); }
  void start();
  void watch();
  void note_progress(std::int64_t now) noexcept;
  [[nodiscard]] bool is_at_its_limit(std::int64_t ns) const noexcept {
    return static_cast<double>(ns) * 1e-9 >= limit().value;
  }
  [[nodiscard]] core::Seconds limit() const noexcept {
    return {timeout.value + (phase() == Activity::init ? start_allowance.value : seen_allowance_s)};
  }
  void end_if_stalled();
  void speak_if_interrupted();
  void claim_report();
  [[noreturn]] void report(std::vector<Finding> findings);
  [[noreturn]] void report_alone();
  [[noreturn]] void report_above();
  [[noreturn]] void report_lost_guard();
  [[noreturn]] void leave_with(const std::string& report);
  [[noreturn]] void leave_after_report();
  void act_on(const std::string& report);
  [[nodiscard]] std::vector<Finding> hear_other_nodes(const std::vector<Finding>& findings);
  void say_last_words();
  [[noreturn]] void leave();

  [[nodiscard]] bool has_other_nodes() const noexcept { return n_ranks.load() > n_local_ranks && n_local_ranks > 0; }
  [[nodiscard]] Activity phase() const noexcept { return static_cast<Activity>(slot->phase.load()); }

  const core::Clock& clock;
  const core::Seconds timeout;
  Drill* const drill;
  const int n_local_ranks;
  const std::chrono::milliseconds tick;
  const std::int64_t longest_gap_ns;
  const core::Seconds start_allowance;
  Above above;
  std::atomic<int> n_ranks{0};
  std::atomic<double> allowance_s{0};
  BoardSlot alone{};  ///< used without a board
  std::unique_ptr<Board> board;
  BoardSlot* slot = &alone;

  // Used by the thread only.
  double seen_allowance_s = 0;  ///< at the last tick
  std::uint64_t last_position = 0;
  std::int64_t last_tick_ns = 0;
  std::int64_t standstill_ns = 0;
  Silence silence{};
  bool was_stopped = false;       ///< between the last two ticks
  std::int64_t signalled_ns = 0;  ///< when a pending interrupt was first seen
  core::ExitCode exit_code = core::ExitCode::stalled;

  std::mutex mutex;  ///< guards is_over, last_words, are_words_out, on_stall and meeting_folder
  std::string last_words;
  bool are_words_out = false;  ///< they have been written, and nothing may contradict them
  std::function<void(const std::string&)> on_stall;
  std::string meeting_folder;
  std::condition_variable wake;
  bool is_over = false;
  std::thread thread;
};

/// Only the main thread handles signals.
void Watchdog::State::start() {
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  last_tick_ns = now_ns();
  slot->alive_ns.store(last_tick_ns);
  int error = 0;
  try {
    thread = std::thread{[this] { watch(); }};
  } catch (const std::system_error& failure) {
    error = failure.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  if (error == 0) return;
  throw core::Error{core::ExitCode::system,
                    {.what = fmt::format("cannot start the watchdog's thread: {}", core::system_reason(error)),
                     .where = "",
                     .expected = "limits of this user and control group that allow one more thread",
                     .fix = "raise the limit of processes (ulimit -u), or switch the watchdog off with --timeout 0"}};
}

void Watchdog::State::watch() {
  for (std::unique_lock lock{mutex}; !is_over; lock.lock()) {
    clock.wait(wake, lock, {1e-3 * static_cast<double>(tick.count())});
    if (is_over) return;
    lock.unlock();
    note_progress(now_ns());
    speak_if_interrupted();
    end_if_stalled();
  }
}

void Watchdog::State::note_progress(std::int64_t now) noexcept {
  const std::int64_t gap_ns = std::min(now - last_tick_ns, longest_gap_ns);
  was_stopped = now - last_tick_ns > longest_gap_ns;
  slot->alive_ns.store(now, std::memory_order_relaxed);
  seen_allowance_s = allowance_s.load(std::memory_order_acquire);  // before the position: see enter()
  const std::uint64_t position = slot->position.load(std::memory_order_relaxed);
  if (position != last_position) {
    slot->moved_ns.store(now, std::memory_order_relaxed);
    standstill_ns = 0;
  } else {
    standstill_ns += gap_ns;
  }
  last_position = position;
  last_tick_ns = now;
  above.look(gap_ns);
  if (board) silence.look(board->slots(), gap_ns);
}

void Watchdog::State::end_if_stalled() {
  if (board && board->is_report_out()) was_stopped ? leave() : leave_after_report();
  if (above.has_lost_guard()) report_lost_guard();
  if (static_cast<double>(above.longest_stop_ns()) * 1e-9 >= timeout.value) report_above();
  const bool is_still = is_at_its_limit(standstill_ns) && phase() != Activity::work;
  if (!is_still && !is_at_its_limit(silence.longest_ns())) return;
  if (!board) report_alone();
  const std::vector<Finding> findings = inspect(*board, host_name(), now_ns(), limit());
  const bool someone_moves =
      std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.condition == Condition::moving; });
  const bool is_stall = is_at_its_limit(silence.longest_ns()) ? has_evidence(findings) : !someone_moves;
  if (!is_stall) return;
  // If a process is gone, its guard has reported that, so launchers get time.
  const bool is_told =
      std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.condition == Condition::gone; });
  if (!is_told || is_at_its_limit(std::max(standstill_ns, silence.longest_ns()) - time_for_guards_ns)) report(findings);
}

void Watchdog::State::speak_if_interrupted() {
  if (pending_interrupt() == 0) return;
  if (signalled_ns == 0) signalled_ns = last_tick_ns;
  if (last_tick_ns - signalled_ns > time_for_order_ns) say_last_words();
}

/// Returns only if this process has to report.
void Watchdog::State::claim_report() {
  if (!board || board->claim_report()) return;
  for (const core::Timer waited{clock}; waited.elapsed().value < 1 && !board->is_report_out();) clock.sleep({0.01});
  leave_after_report();
}

void Watchdog::State::report(std::vector<Finding> findings) {
  claim_report();
  find_unread_output(findings);
  const std::vector<Finding> all = has_other_nodes() ? hear_other_nodes(findings) : findings;
  // The process that speaks for all nodes ends the job, unless it is already gone.
  if (has_other_nodes() && find_speaker(all) != host_name()) clock.sleep(time_for_other_nodes);
  leave_with(describe_stall(all, {host_name(), limit(), phase(), has_other_nodes(), n_ranks.load()}));
}

void Watchdog::State::leave_with(const std::string& report) {
  core::write_in_time(STDERR_FILENO, report);
  act_on(report);
  if (board) board->publish_report();
  say_last_words();
  clock.sleep(time_to_speak);
  // A continued stopped process finds the report and leaves first, with exit code 4. SIGKILL would give the job another
  // code, and mpirun of Open MPI 4 may crash or hang if a process leaves while it is in MPI_Init or MPI_Finalize.
  if (board && signal_stopped(board->slots(), SIGCONT) > 0) leave_after_report();
  leave();
}

void Watchdog::State::leave_after_report() {
  say_last_words();  // before the launcher sees the first exit and ends the others
  clock.sleep(time_for_launcher);
  signal_stopped(board->slots(), SIGKILL);
  leave();
}

void Watchdog::State::report_alone() {
  leave_with(describe_alone(read_slot(*slot, Condition::waiting, host_name(), 0), limit()));
}

/// Reports even while the rank is busy, as in a save: no other process would report its end, or end the job.
void Watchdog::State::report_above() {
  claim_report();
  leave_with(fmt::format("error: stalled: stopped for {:g} s, in phase {}\n{}", timeout.value, name(phase()),
                         above.describe_stopped(slot->rank.load())));
}

/// The launcher sees a rank that was killed and ends the job, so a signal may come together with the loss of the guard.
/// A signal that came before the loss shows that the launcher was already ending the job, and killed the guard first.
void Watchdog::State::report_lost_guard() {
  claim_report();
  exit_code = core::ExitCode::system;
  const std::string report = above.describe_lost_guard(slot->rank.load(), name(phase()));
  if (tell_exit(core::to_int(exit_code)) && (signalled_ns == 0 || signalled_ns == last_tick_ns)) leave_with(report);
  act_on(report);
  leave();
}

/// Findings of this node and of those that report within a moment. A node with evidence does not wait for others.
std::vector<Finding> Watchdog::State::hear_other_nodes(const std::vector<Finding>& findings) {
  std::string folder;
  {
    const std::lock_guard lock{mutex};
    folder = meeting_folder;
  }
  if (!folder.empty()) in_time([folder, findings] { testify(folder, host_name(), findings); });
  if (has_evidence(findings)) return findings;
  clock.sleep(time_for_other_nodes);
  const auto others = std::make_shared<std::vector<Finding>>();
  const bool is_heard = !folder.empty() && in_time([folder, others] { *others = hear_others(folder, host_name()); });
  std::vector<Finding> all = findings;
  if (is_heard) all.insert(all.end(), others->begin(), others->end());
  return all;
}

void Watchdog::State::act_on(const std::string& report) {
  std::function<void(const std::string&)> action;
  {
    const std::lock_guard lock{mutex};
    action = on_stall;
  }
  if (action) in_time([action, report] { action(report); });
}

void Watchdog::State::say_last_words() {
  const std::lock_guard lock{mutex};
  are_words_out = are_words_out || !last_words.empty();
  core::write_in_time(STDOUT_FILENO, std::exchange(last_words, {}));
}

void Watchdog::State::leave() {
  say_last_words();
  above.wake();
  _exit(core::to_int(exit_code));
}

Watchdog::Watchdog(const LauncherHint& hint, core::Seconds timeout, Drill* drill, const core::Clock& clock)
    : state_{std::make_unique<State>(hint, timeout, drill, clock)} {}

Watchdog::~Watchdog() = default;

void Watchdog::set_rank(int rank, int n_ranks) noexcept {
  state_->slot->rank.store(rank);
  state_->n_ranks.store(n_ranks);
  if (state_->drill != nullptr) state_->drill->set_rank(rank);
}

bool Watchdog::claim_last_word() noexcept { return !state_->board || state_->board->claim_report(); }

void Watchdog::set_on_stall(std::function<void(const std::string&)> action) {
  const std::lock_guard lock{state_->mutex};
  state_->on_stall = std::move(action);
}

void Watchdog::set_meeting_folder(std::string folder) {
  const std::lock_guard lock{state_->mutex};
  state_->meeting_folder = std::move(folder);
}

void Watchdog::set_last_words(std::string words) {
  const std::lock_guard lock{state_->mutex};
  if (!state_->are_words_out) state_->last_words = std::move(words);
}

std::string Watchdog::withdraw_last_words() {
  const std::lock_guard lock{state_->mutex};
  return std::exchange(state_->last_words, {});
}

void Watchdog::enter(Activity phase, core::Seconds allowance) {
  std::atomic<std::uint64_t>& position = state_->slot->position;
  state_->slot->phase.store(static_cast<std::uint32_t>(phase), std::memory_order_relaxed);
  state_->slot->unit.store(0, std::memory_order_relaxed);
  position.store(((position.load(std::memory_order_relaxed) >> 32) + 1) << 32, std::memory_order_relaxed);
  // Stored after the position, so that a process which sees a smaller one also knows of the progress. A larger one that
  // arrives late does no harm.
  state_->allowance_s.store(allowance.value, std::memory_order_release);
  if (state_->drill != nullptr) state_->drill->reach(name(phase));
}

void Watchdog::set_unit(std::uint64_t unit) {
  state_->slot->unit.store(unit, std::memory_order_relaxed);
  if (state_->drill != nullptr) state_->drill->reach(name(state_->phase()), unit);
}

void Watchdog::set_wait(Wait what, std::size_t number) noexcept {
  state_->slot->wait.store(std::uint64_t{static_cast<std::uint32_t>(what)} << 32 | (number & 0xffffffff),
                           std::memory_order_relaxed);
}

void Watchdog::beat() noexcept {
  auto& position = state_->slot->position;
  position.store(position.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace lockstep::runtime
