#include "training/launch.hpp"

#include <fmt/format.h>

namespace lockstep::training {

std::optional<core::Error> find_singletons(const runtime::LauncherHint& hint, int n_ranks) {
  if (n_ranks > 1 || hint.n_ranks.value_or(1) <= 1) return std::nullopt;
  return core::Error{core::ExitCode::usage,
                     {.what = fmt::format("each of the {} processes of {} is alone: it does not belong to the MPI "
                                          "library of this program",
                                          *hint.n_ranks, hint.name),
                      .where = "launcher",
                      .expected = fmt::format("one job of {} ranks", *hint.n_ranks),
                      .fix = "start it by the launcher of its own MPI, or by --nproc N"}};
}

void check_nproc(int nproc, int n_ranks) {
  if (nproc == 0 || nproc == n_ranks) return;
  core::fail_usage({.what = fmt::format("a launcher has started {} ranks already", n_ranks),
                    .where = "--nproc",
                    .expected = fmt::format("{} ranks, or no launcher", nproc),
                    .fix = "leave out --nproc"});
}

}  // namespace lockstep::training
