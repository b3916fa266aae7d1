// Several threads make batches ahead of their use, a piece of a batch at a time; the caller helps while it waits.
// Invariant: batches come out in order; at most `n_slots` exist at once, including the one taken last. take() rethrows
// the errors of pieces; the destructor waits only for pieces that have begun.
// Used by data/load/loader and data/write/pack_pass.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace lockstep::data {

class Pipeline {
 public:
  /// One unit of work: part `number` of `n_pieces` of a batch, to be left in a slot.
  struct Piece {
    std::uint64_t batch = 0;
    std::size_t slot = 0;
    std::uint64_t number = 0;
    std::size_t worker = 0;  ///< the thread that does it; the number of threads: the caller of take()
  };
  using Work = std::function<void(const Piece&)>;

  /// `n_threads` threads (fewer if the system allows no more) and take() call `work` at once; with threads, at least
  /// two slots are needed.
  Pipeline(std::size_t n_threads, std::size_t n_slots, std::uint64_t n_pieces, Work work);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Waits until no piece is being made, and drops all batches; until start(), the data that `work` reads may change.
  void stop();
  /// Makes batches [first, end), after stop().
  void start(std::uint64_t first, std::uint64_t end);

  struct Taken {
    std::uint64_t batch = 0;
    std::size_t slot = 0;
  };
  /// Returns the next batch, whose slot belongs to the caller until the next call; nothing after the last. Rethrows an
  /// error of its pieces (the lowest piece's), at this and every further call.
  [[nodiscard]] std::optional<Taken> take();

 private:
  struct Slot {
    std::uint64_t n_open = 0;  ///< pieces not done
    std::uint64_t bad_piece = 0;
    std::exception_ptr error{};
  };

  [[nodiscard]] Slot& slot_of(std::uint64_t batch) noexcept { return slots_[batch % slots_.size()]; }
  [[nodiscard]] bool has_work() const noexcept { return issued_ < end_ && issued_ < released_ + slots_.size(); }
  [[nodiscard]] bool is_ready(std::uint64_t batch) noexcept { return batch < issued_ && slot_of(batch).n_open == 0; }
  [[nodiscard]] Piece issue(std::size_t worker) noexcept;
  void run(const Piece& piece, std::unique_lock<std::mutex>& lock);
  void run_worker(std::size_t worker);
  template <class Condition>
  static void await(std::condition_variable& signal, std::unique_lock<std::mutex>& lock, Condition condition);

  const std::uint64_t n_pieces_;
  const Work work_;
  std::mutex mutex_;                  // guards all below
  std::condition_variable has_work_;  // for workers
  std::condition_variable is_done_;   // for take() and stop()
  std::vector<Slot> slots_;           // batch b is in slot b % n_slots
  std::uint64_t next_ = 0;            // batch to take
  std::uint64_t released_ = 0;        // batches below it have left their slots
  std::uint64_t issued_ = 0;          // batches below it have been handed out whole
  std::uint64_t issued_pieces_ = 0;   // of batch issued_
  std::uint64_t end_ = 0;
  std::size_t n_busy_ = 0;
  bool is_leaving_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep::data
