#include "training/train/divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "checkpoint/folder.hpp"
#include "core/log.hpp"
#include "runtime/session.hpp"
#include "runtime/together.hpp"

namespace lockstep::training {

bool Divergence::note_change(const parallel::StepAgreement& agreement) {
  if (!agreement.changed && agreement.replicas_agree) return false;
  change_ = core::complaint_of([&] {
    const parallel::ReplicaGuard& guard = learner_.synchronizer().guard();
    if (agreement.changed) runtime::together(world_, [&] { guard.fail_for_change(); });
    guard.fail_for_replicas();
  });
  return true;
}

std::optional<checkpoint::Checkpoint> Divergence::find_sound(const core::Error& change, const std::string& folder,
                                                             std::uint64_t n_steps,
                                                             const std::optional<ResumeRecord>& resumed) {
  const bool is_again = changed_at_ && n_steps <= *changed_at_;
  changed_at_ = n_steps;
  std::vector<std::string> paths, set_aside;  // on rank 0
  const std::uint64_t n_sound = learner_.least_sound_steps();
  runtime::together(world_, [&] {
    if (world_.rank() != 0) return;
    set_aside = checkpoint::set_aside_newer(folder, n_sound);
    if (is_again) return;
    paths = checkpoint::list_checkpoints(folder);
    const bool is_other = resumed && std::ranges::find(paths, resumed->from) == paths.end();
    if (is_other && resumed->at.step <= n_sound) paths.push_back(resumed->from);
  });
  auto from = checkpoint::open_first_whole(world_, [&] { return paths; });
  if (world_.rank() == 0) {
    for (const std::string& path : set_aside)
      core::log_warning(fmt::format("checkpoint '{}' may contain the change and was renamed", path));
    if (from)
      core::log_warning(fmt::format("after step {}: {} ({}); going back to {}", n_steps, change.problem().what,
                                    change.problem().where, from->path()));
  }
  return from;
}

std::string Divergence::report_not_finite(const parallel::StepAgreement& agreement, const RunState& state) {
  is_step_bad_ = true;
  const std::string message = fmt::format("the {} of step {} is not finite",
                                          std::isfinite(agreement.loss) ? "gradient" : "loss", state.n_agreed + 1);
  if (world_.rank() == *agreement.not_finite)
    core::log_error(
        core::describe({.what = fmt::format("{}, at a learning rate of {:.4g}", message, state.rate_of(state.n_agreed)),
                        .where = fmt::format("rank {} on {}, first in {}", world_.rank(), runtime::host_name(),
                                             learner_.not_finite()->where),
                        .expected = "finite numbers",
                        .fix = "use a lower --lr, a --warmup or --clip-norm; or check the data"}));
  return message;
}

BadStep Divergence::gather_bad_step(const RunState& state) const {
  BadStep bad{.learning_rate = state.rate_of(state.n_agreed)}, of_mine;
  const auto& mine = learner_.not_finite();
  const bool has_mine = mine && mine->step == state.n_agreed;  // others may have found something in later steps
  const bool is_cause = has_mine && mine->is_parameter;        // what ranks saw in layers follows from it
  if (world_.any(is_cause) ? is_cause : has_mine)
    of_mine.seen.push_back({world_.rank(), runtime::host_name(), mine->where, mine->samples});
  for (const std::string& of_rank : world_.gather(to_json(of_mine)))
    for (const Sighting& sighting : parse_bad_step(of_rank).seen) bad.seen.push_back(sighting);
  return bad;
}

}  // namespace lockstep::training
