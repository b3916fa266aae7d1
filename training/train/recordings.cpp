#include "training/train/recordings.hpp"

#include "core/error.hpp"

namespace lockstep::training {
namespace {

runtime::Recording make_recording(runtime::Stream& stream, const std::function<void()>& enqueue) try {
  return stream.record(enqueue);
} catch (const core::Error& error) {
  core::Problem problem = error.problem();
  problem.where = "recording a step";
  problem.fix = "use --graph off, which enqueues each step separately";
  throw core::Error{error.code(), problem, error.location()};
}

}  // namespace

void Recordings::run(const Key& key, runtime::Stream& stream, const std::function<void()>& enqueue) {
  Recorded& recorded = recorded_[key];
  if (recorded.n_made++ == 0) return enqueue();
  if (recorded.n_made == 2) recorded.recording = make_recording(stream, enqueue);
  stream.replay(recorded.recording);
}

}  // namespace lockstep::training
