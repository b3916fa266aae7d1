#include "data/load/pipeline.hpp"

#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/timer.hpp"

namespace lockstep::data {
namespace {

// Sleeping and waking takes tens of microseconds, longer than most batches of small samples.
constexpr core::Seconds looks_before_sleep{50e-6};

}  // namespace

Pipeline::Pipeline(std::size_t n_threads, std::size_t n_slots, std::uint64_t n_pieces, Work work)
    : n_pieces_{n_pieces}, work_{std::move(work)}, slots_(n_slots) {
  core::require(n_slots > (n_threads > 0 ? 1 : 0) && n_pieces > 0, "a pipeline has slots and pieces");
  threads_.reserve(n_threads);
  try {
    for (std::size_t worker = 0; worker < n_threads; ++worker)
      threads_.emplace_back([this, worker] { run_worker(worker); });
  } catch (const std::system_error&) {
    return;  // the system allows no more threads: existing ones, or take(), do the work
  }
}

Pipeline::~Pipeline() {
  {
    const std::lock_guard lock{mutex_};
    is_leaving_ = true;
  }
  has_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Pipeline::stop() {
  std::unique_lock lock{mutex_};
  end_ = 0;
  is_done_.wait(lock, [&] { return n_busy_ == 0; });
  for (Slot& slot : slots_) slot = {};
}

void Pipeline::start(std::uint64_t first, std::uint64_t end) {
  {
    const std::lock_guard lock{mutex_};
    next_ = released_ = issued_ = first;
    issued_pieces_ = 0;
    end_ = end;
  }
  has_work_.notify_all();
}

std::optional<Pipeline::Taken> Pipeline::take() {
  std::unique_lock lock{mutex_};
  if (next_ >= end_) return std::nullopt;
  released_ = next_;
  has_work_.notify_all();
  while (!is_ready(next_)) {
    if (has_work())
      run(issue(threads_.size()), lock);
    else
      await(is_done_, lock, [&] { return is_ready(next_); });
  }
  if (const Slot& slot = slot_of(next_); slot.error) std::rethrow_exception(slot.error);
  const std::uint64_t batch = next_++;
  return Taken{batch, static_cast<std::size_t>(batch % slots_.size())};
}

Pipeline::Piece Pipeline::issue(std::size_t worker) noexcept {
  Slot& slot = slot_of(issued_);
  if (issued_pieces_ == 0) slot = {.n_open = n_pieces_};
  const Piece piece{issued_, static_cast<std::size_t>(issued_ % slots_.size()), issued_pieces_++, worker};
  if (issued_pieces_ == n_pieces_) {
    ++issued_;
    issued_pieces_ = 0;
  }
  return piece;
}

void Pipeline::run(const Piece& piece, std::unique_lock<std::mutex>& lock) {
  ++n_busy_;
  lock.unlock();
  std::exception_ptr error;
  try {
    work_(piece);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  --n_busy_;
  Slot& slot = slot_of(piece.batch);
  if (error && (!slot.error || piece.number < slot.bad_piece)) {
    slot.error = error;
    slot.bad_piece = piece.number;
  }
  if (--slot.n_open == 0 || n_busy_ == 0) is_done_.notify_all();
}

template <class Condition>
void Pipeline::await(std::condition_variable& signal, std::unique_lock<std::mutex>& lock, Condition condition) {
  const core::Stopwatch watch;
  while (!condition() && watch.elapsed().value < looks_before_sleep.value) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  signal.wait(lock, condition);
}

void Pipeline::run_worker(std::size_t worker) {
  std::unique_lock lock{mutex_};
  for (;;) {
    await(has_work_, lock, [&] { return is_leaving_ || has_work(); });
    if (is_leaving_) return;
    run(issue(worker), lock);
  }
}

}  // namespace lockstep::data
