// reduce_all on a made-up GPU per rank, with a library of the host in NCCL's place: its rows take part, unsupported
// requests are refused, and files record the connections.
#include <fstream>
#include <nlohmann/json.hpp>

#include "comm/device_plan.hpp"
#include "support/on_made_up_gpus.hpp"
#include "support/reduce_all_program.hpp"

namespace lockstep::reduce_all {
namespace {

using support::Ended;
using support::expect_all;
using support::has;
using support::matches;
using support::Variables;
using support::world;

Ended run_line(const std::vector<std::string>& words, int /*n_ranks*/) {
  support::beat();
  unsetenv("NCCL_GRAPH_REGISTER");  // from the previous run
  return support::run_processes(world(), support::reduce_all_by_rank(words));
}

Ended ran(const std::string& line) { return expect_done(run_line, line); }

const std::string brief = "-e 8 -n 4 -w 1 ";
const std::string right = "# Out of bounds values : 0 OK\n";

nlohmann::json device_of(const std::string& file) {
  return nlohmann::json::parse(std::ifstream{file})["meta"]["device"];
}

/// Four GPUs on the node, and settings of the library in NCCL's place.
Variables::Values with(Variables::Values others = {}) {
  others["LOCKSTEP_MADE_UP_GPUS"] = "4";
  return others;
}

class OnGpuEach : public support::OnMadeUpGpus {
  Variables gpus_{with()};
};

TEST_F(OnGpuEach, TheLibraryTakesPart) {
  if (world().n_ranks() != 2) return;
  const Ended ended = ran("-b 8 -e 8K -f 32 -n 4 -w 1 --visits 1 --json r.json");
  expect_told(ended, 0,
              {"# device: 2 GPUs, such as made-up GPU", "# all_reduce: staged, nccl, auto\n",
               "# auto: the choice of lockstep train: nccl\n", right});
  for (const char* const line :
       {"^# device: .*, NCCL [0-9.]+ \\(24 channels\\)$", "^# host link: .* \\(slowest: rank [0-9]",
        "^# %limit: .* over the links between their GPUs .*2\\(P-1\\)/P of the vector"})
    EXPECT_TRUE(matches(ended.out, line)) << line << "\n" << ended.out;
  EXPECT_EQ(device_of("r.json")["nccl_channels"].dump(), "24");
  expect_refused(run_line, {brief + "--graph --baseline r.json", {"calls replayed in a graph"}, 2});
}

// Which limit is the slower one depends on the machine: find_limit() is tested with given times.
TEST_F(OnGpuEach, TheLinksAreALimitWhereTheLibraryTakesPart) {
  if (world().n_ranks() == 3) {
    const Ended ended = ran("-b 4M -e 4M -n 4 --visits 0 --algorithm nccl --json r.json");
    EXPECT_TRUE(matches(ended.out, "^# %limit: .* over the links between their GPUs")) << ended.out;
    const std::string by = nlohmann::json::parse(std::ifstream{"r.json"})["results"][0]["limit_by"];
    EXPECT_TRUE(by == "links" || by == "copying") << by;
  }
  if (world().n_ranks() != 2) return;
  EXPECT_TRUE(matches(ran(brief + "--collective all_gather --algorithm nccl").out,
                      "^# %limit: .* \\(\\(P-1\\)/P of the vector;"));
  EXPECT_FALSE(matches(ran(brief + "--algorithm staged").out, "^# %limit: .*links"));
}

// Each rank has a different one.
TEST_F(OnGpuEach, TheLibraryServesRanksThatShareAGpuIfEachNamesAHost) {
  if (world().n_ranks() != 2) return;
  const Variables one_gpu{{{"LOCKSTEP_MADE_UP_GPUS", "1"}}};
  const std::string line = "-b 8 -e 8K -f 32 -n 4 -w 1 --visits 1 --share-gpu --device cuda";
  for (const bool is_own : {true, false}) {
    const Variables host{{{"NCCL_HOSTID", is_own ? std::to_string(world().rank()) : "one"}}};
    const Ended ended = ran(line);
    expect_told(ended, 0, {right});
    EXPECT_EQ(has(ended.out, " nccl "), is_own) << ended.out;
  }
}

TEST_F(OnGpuEach, RowsAreRightOrRefused) {
  const Variables::Values takes_gpus{{"LOCKSTEP_MADE_UP_MPI", "1"}};
  const Variables::Values no_switches{{"LOCKSTEP_MADE_UP_SWITCHES", "0"}};
  const std::string scatter = "-b 4K -e 4K -n 4 -w 1 --collective reduce_scatter --algorithm ";
  const std::string pretended = "-b 4K -e 4K -n 4 -w 1 --ranks-per-node 1 --algorithm ";
  expect_all(run_line,
             {
                 {{3},
                  "-b 8 -e 4K -f 64 -n 4 -w 1 --algorithm staged,mpi:device,nccl",
                  {"# all_reduce: staged, mpi:device, nccl\n", right},
                  takes_gpus},
                 {{3}, scatter + "mpi:device", {" mpi:device ", right}, takes_gpus},
                 {{3}, scatter + "mpi:device --in-place", {" mpi:device ", right}, takes_gpus},
                 {{2}, brief + "--algorithm mpi:device", {"mpi:device needs a GPU-aware MPI library"}, {}, 2},
                 {{3},
                  "-b 6K -e 6K -n 4 -w 1 --collective reduce_scatter --algorithm nccl,nccl:ring/ll128,nccl:nvls",
                  {" nccl:ring/ll128 ", right}},
                 // Requests that NCCL would fulfil in another way than the row says.
                 {{3},
                  brief + "--algorithm nccl:nvls",
                  {"nccl:nvls needs NVSwitches that reduce ", ", and some of these GPUs have none"},
                  no_switches,
                  2},
                 {{3}, scatter + "nccl:nvls", {"nccl:nvls needs parts of equal length"}, {}, 2},
                 {{3}, brief + "--algorithm nccl:nvls -d int8", {"nccl:nvls does not sum int8"}, {}, 2},
                 {{3}, brief + "--algorithm nccl:nvlstree", {"nccl:nvlstree needs ranks on several nodes"}, {}, 2},
                 // NCCL does not know simulated nodes.
                 {{3},
                  pretended + "nccl:nvlstree",
                  {"nccl:nvlstree needs ranks on several nodes, and NCCL sees all of these on one"},
                  {},
                  2},
                 {{3}, pretended + "nccl:nvls", {" nccl:nvls ", right}},
                 {{2}, brief + "--algorithm nccl -d int16", {"nccl does not support int16"}, {}, 2},
                 {{2}, brief + "--algorithm nccl -o avg -d int32", {"nccl averages only floats"}, {}, 2},
                 {{2}, brief + "--device cuda --algorithm ring", {"ring works only on the memory of the host"}, {}, 2},
             });
}

// The graph contains a library's own calls, but not those of the host.
TEST_F(OnGpuEach, CallsInAGraphGiveWhatTheyGiveWithout) {
  if (world().n_ranks() != 2) return;
  const Ended ended = ran("-b 8 -e 4K -f 64 -n 4 -w 1 --graph --algorithm staged,nccl,nccl:tree/ll --json g.json");
  expect_told(ended, 0, {"; a graph replays the calls, except those through the host\n", " nccl:tree/ll ", right});
  EXPECT_FALSE(has(ended.err, "no effect")) << "a warning of a graph that is there";
  EXPECT_TRUE(device_of("g.json")["graph"].get<bool>());
  expect_all(run_line, {{{2}, "-b 8 -e 8 -n 8 --baseline g.json", {"calls replayed in a graph"}, {}, 2},
                        {{2}, brief + "--graph --buffers cold", {"a graph replays one pair of buffers"}, {}, 2},
                        {{2},
                         brief + "--graph --algorithm staged --json r.json",
                         {"warning: --graph has no effect: no NCCL row takes part\n"},
                         {},
                         0,
                         {"replayed"}}});
  EXPECT_FALSE(device_of("r.json")["graph"].get<bool>());
}

// With every communicator; the library refuses calls in other memory, and at other places than on other ranks.
TEST_F(OnGpuEach, VectorsAreRegistered) {
  if (const auto why_not = comm::registration_obstacle(comm::Registration::symmetric)) GTEST_SKIP() << *why_not;
  if (world().n_ranks() == 2) {
    for (const std::string words :
         {"symmetric", "local --in-place --graph", "symmetric --buffers cold --sync none",
          "local --collective reduce_scatter", "symmetric --collective all_gather --in-place"}) {
      const std::string how = words.substr(0, words.find(' '));
      expect_told(ran("-b 256 -e 8K -f 32 -n 4 -w 1 --algorithm nccl,nccl:ring/ll --visits 1 --json " + how +
                      ".json --register " + words),
                  0, {" (24 channels); vectors are registered with NCCL (" + how + ")", right});
      EXPECT_EQ(device_of(how + ".json")["register"].get<std::string>(), how);
    }
    expect_refused(run_line, {"-b 8 -e 8 -n 8 -R 2 --collective all_gather --in-place --baseline local.json",
                              {"vectors registered (local)"},
                              2});
  }
  // A missing ability is reported once, and is not in the results.
  expect_all(run_line, {{{2},
                         brief + "-R 2 --json r.json",
                         {"warning: --register symmetric has no effect: NCCL refuses this registration"},
                         {{"LOCKSTEP_HOST_NCCL_REGISTERS", "local"}},
                         0,
                         {"registered with NCCL"}},
                        {{2},
                         brief + "--register local --algorithm staged",
                         {"warning: --register local has no effect: no NCCL row takes part\n"}},
                        {{2},
                         brief + "--register local",
                         {"'local' needs NCCL 2.19.0 or newer, and this is 2.18.0"},
                         {{"LOCKSTEP_HOST_NCCL_VERSION", "21800"}},
                         2},
                        {{2},
                         brief + "--algorithm nccl --register symmetric",
                         {"a fault that was asked for"},
                         {{"LOCKSTEP_HOST_NCCL_FAILS", "5"}},
                         3}});
  if (world().n_ranks() != 2) return;
  EXPECT_EQ(device_of("r.json")["register"].get<std::string>(), "none");
}

TEST_F(OnGpuEach, ALibraryThatConnectsNobodyOrIsTooOldIsToldOnce) {
  for (const std::string unconnected : {"identifier", "ranks"}) {
    const Variables::Values values{{"LOCKSTEP_HOST_NCCL_UNCONNECTED", unconnected}};
    expect_all(run_line, {{{1, 3},
                           brief,
                           {"error: NCCL ", ": system error: no interface that was asked for (--device cuda)\n",
                            "  expected: an NCCL that connects the GPUs of all ranks\n", "  fix: NCCL_DEBUG=INFO ",
                            "NCCL_SOCKET_IFNAME", "; or --device host\n"},
                           values,
                           2},
                          {{1, 3}, brief + "--algorithm staged", {right}, values}});
  }
  expect_all(run_line, {{{2},
                         brief,
                         {"error: NCCL 2.17.4 is too old (libnccl.so.2)\n", "  expected: NCCL 2.18.0 or newer\n",
                          "LD_LIBRARY_PATH; this program was built with ", "; or --device host\n"},
                         {{"LOCKSTEP_HOST_NCCL_VERSION", "21704"}},
                         2},
                        {{2}, brief + "--algorithm nccl", {right}, {{"LOCKSTEP_HOST_NCCL_VERSION", "21800"}}},
                        {{2},
                         brief + "--algorithm nccl",
                         {", all_reduce: system error: a fault that was asked for; NCCL_DEBUG"},
                         {{"LOCKSTEP_HOST_NCCL_FAILS", "5"}},
                         3}});
}

}  // namespace
}  // namespace lockstep::reduce_all
