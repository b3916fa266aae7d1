#include "reduce_all/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "comm/transport.hpp"
#include "core/log.hpp"
#include "core/print.hpp"
#include "metrics/fingerprint.hpp"
#include "reduce_all/demo.hpp"
#include "reduce_all/gate.hpp"
#include "reduce_all/limit.hpp"
#include "reduce_all/links.hpp"
#include "reduce_all/preflight.hpp"
#include "reduce_all/registration.hpp"
#include "reduce_all/sizes.hpp"
#include "reduce_all/sweep.hpp"
#include "reduce_all/texts.hpp"
#include "reduce_all/verdict.hpp"
#include "reduce_all/visits.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/memory.hpp"

namespace lockstep::reduce_all {
namespace {

// On rank 0.
BenchmarkInfo describe_run(const Job& job, const CoreWatch& cores, const std::optional<CoreReach>& reach,
                           const std::optional<HostLink>& host_link) {
  BenchmarkInfo info{
      .options = job.options,
      .environment = runtime::read_environment(),
      .topology = job.topology,
      .warnings = find_warnings(job.topology, job.device, job.connections),
      .limit = job.device.is_host()
                   ? describe_limit(job.options, job.topology, cores.is_on() && job.transport.n_nodes() == 1)
                   : describe_limit_of_devices(job.options, job.topology, job.links != nullptr),
      .cores = reach,
      .why_no_cores = cores.why_off(),
      .device = job.device,
      .host_link = host_link,
      .connections = job.connections,
      .nccl = comm::nccl_version(),
      .registration = job.registration,
      .graph = job.graph};
  for (const Participant& participant : job.participants) {
    info.algorithms.emplace_back(participant.name());
    if (participant.is_auto()) info.chosen = describe_auto(job.calls, job.transport, job.groups.devices());
  }
  info.environment.hosts = job.topology.hosts();
  if (job.options.ranks_per_node > 0) info.simulated_nodes = job.transport.n_nodes();
  return info;
}

void print_verdict(const Job& job, const Report& report, const Outcome& outcome) {
  const VerdictContext context{.n_ranks = job.world.n_ranks(),
                               .n_nodes = job.topology.n_nodes,
                               .n_warnings = find_warnings(job.topology, job.device, job.connections).size(),
                               .is_complete = outcome.is_complete};
  std::string text = "\n";
  for (const std::string& sentence : verdict(report.rows(), context)) text += sentence + "\n";
  core::print(text);
}

constexpr const char* fewer_visits = "there are fewer visits than requested";

// Collective.
void visit_again(const Job& job, CoreWatch& cores, const core::Timer& watch, Report* report, Outcome& outcome) {
  if (report != nullptr) {
    core::print("# for comparisons, every size is measured briefly {} times more (--visits 0: never)\n",
                job.options.visits);
    Outcome stalled = outcome;
    stalled.cut_short_by = fmt::format("a rank stalled, or a signal came during a call; {}", fewer_visits);
    job.progress.set_last_words(text_closing(report->rows(), stalled));
  }
  Visits visits{job, cores, watch};
  const std::vector<Visited> visited = visits.make();
  outcome.signal = visits.signal();
  if (outcome.signal != 0) {
    outcome.is_complete = false;
    outcome.cut_short_by = fmt::format("{}; {}", name_end(outcome.signal), fewer_visits);
  }
  if (report != nullptr) report->add_visits(visited, job.options.in_place);
}

// Collective: whether the comparison, if there is one, finds anything slower.
bool gate_is_shut(const Job& job, Report* report, const Gate* gate, const Outcome& outcome) {
  bool is_shut = false;
  if (gate != nullptr) {
    const report::Comparison comparison = gate->judge(report->document(outcome.is_complete));
    report->add_comparison(metrics::dump(report::to_json(comparison), 1), outcome);
    is_shut = !comparison.is_passed();
  }
  return runtime::broadcast_value(job.world, is_shut);
}

// The part of the result file that is known before any measurement.
std::string blank_document(const Job& job) {
  BenchmarkInfo info;
  info.options = job.options;
  info.environment = runtime::read_environment();
  info.topology = job.topology;
  info.device = job.device;
  info.nccl = comm::nccl_version();
  info.connections = job.connections;
  info.registration = job.registration;
  info.graph = job.graph;
  info.environment.hosts = job.topology.hosts();
  if (job.options.ranks_per_node > 0) info.simulated_nodes = job.transport.n_nodes();
  return json_document(json_meta(info), "", false);
}

// Collective: returns the maximum over all ranks' devices, so that copies of cold buffers have the same offsets
// everywhere, as registered memory requires.
core::Bytes largest_cache(const runtime::Communicator& world, const runtime::DeviceChoice& device) {
  const std::vector<core::Bytes> all = runtime::gather_values(world, std::span{&device.gpu.cache, 1});
  return runtime::broadcast_value(world, all.empty() ? core::Bytes{} : *std::ranges::max_element(all));
}

// Collective: everything after the checks.
int measure(const Job& job, Report* report, const Gate* gate) {
  CoreWatch cores{job.world, job.transport, job.topology.is_oversubscribed(), job.progress, job.groups.is_on_host()};
  const std::optional<CoreReach> reach = cores.reach();
  const std::optional<HostLink> host_link = job.device.is_host() ? std::nullopt : measure_host_link(job.world);
  if (report != nullptr) {
    report->begin(describe_run(job, cores, reach, host_link));
    // Long vectors take seconds to set up.
    job.progress.set_last_words(text_closing({}, {.is_complete = false, .cut_short_by = "nothing was measured"}));
  }
  const core::Timer watch{job.clock};
  Outcome outcome = Sweep{job, cores, report}.run();
  if (job.options.visits > 0 && outcome.cut_short_by.empty()) visit_again(job, cores, watch, report, outcome);
  job.progress.enter(runtime::Activity::finish);
  if (report != nullptr) {
    report->end(outcome, job.progress.withdraw_last_words().empty());
    if (job.options.verdict) print_verdict(job, *report, outcome);
  }
  // Ranks without work wait for rank 0.
  const bool is_shut = outcome.signal == 0 && gate_is_shut(job, report, gate, outcome);
  if (outcome.n_wrong > 0 || is_shut) return core::to_int(core::ExitCode::failed);
  return outcome.signal == 0 ? core::to_int(core::ExitCode::ok) : 128 + outcome.signal;
}

// Collective: connects through the libraries of the rows that have one.
void connect_devices(Job& job) {
  const std::vector<comm::DeviceGroup*> libraries = libraries_of(job);
  if (!libraries.empty())
    job.connections = comm::gather_connections(job.world, job.topology, libraries.front()->connection());
  if (!libraries.empty() && may_have_links(job.device, job.topology)) job.links = libraries.front();
  job.registration = find_registration(job);
  job.graph = find_graph(job);
}

// Collective: all ranks get rank 0's result.
int compare_alone(const runtime::Session& session, const Options& options) {
  core::ExitCode answer = core::ExitCode::ok;
  const auto complaint = core::complaint_of([&] {
    if (session.world().rank() == 0) answer = compare_files(options);
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return core::to_int(runtime::broadcast_value(session.world(), answer));
}

}  // namespace

int run(const runtime::Session& session, const CommandLine& line, const runtime::LauncherHint& hint,
        Progress& progress) {
  const runtime::Communicator& world = session.world();
  const Options& options = line.options;
  if (const auto alone = runtime::find_singletons(hint, world.n_ranks())) {
    core::log_error(alone->what());  // every rank reports it, because the others may not exist
    return core::to_int(alone->code());
  }
  if (const auto bad = session.agree(line.error)) return core::to_int(*bad);
  if (const std::string text = text_for(options.task); !text.empty()) {
    if (world.rank() == 0) core::print(text);
    return core::to_int(core::ExitCode::ok);
  }
  if (options.task == Task::compare) return compare_alone(session, options);
  if (const auto bad = session.agree(core::complaint_of([&] { check_world(options, line.calls, world.n_ranks()); })))
    return core::to_int(*bad);

  runtime::catch_interrupts();
  progress.enter(runtime::Activity::setup);
  const runtime::Topology topology = runtime::discover_topology(world);
  const auto transport = comm::make_transport(world, {.ranks_per_node = options.ranks_per_node, .topology = &topology});
  const bool is_demo = options.task == Task::demo;
  runtime::DeviceChoice device;
  const auto no_device = core::complaint_of([&] {
    if (!is_demo) device = runtime::choose_device(world, topology, options.device);
  });
  if (const auto bad = session.agree(no_device)) return core::to_int(*bad);
  for (const auto& [flag, is_given] : {std::pair{"--share-gpu", options.device.shares_gpu},
                                       {"--graph", options.graph},
                                       {"--register", options.registration != comm::Registration::none}})
    if (world.rank() == 0 && device.is_host() && is_given)
      core::log_warning(fmt::format("{} has no effect: the vectors are in host memory", flag));
  const runtime::UseDevice use{device};
  // Otherwise NCCL itself registers the vectors of recorded calls, which other rows do not have.
  if (options.registration == comm::Registration::none) setenv("NCCL_GRAPH_REGISTER", "0", 0);
  Groups groups{*transport, comm::devices_of(device), options.graph};
  const core::Bytes cache = device.is_host() ? runtime::last_level_cache() : largest_cache(world, device);
  Job job{options, world, session.clock(), topology, *transport, progress, line.calls, device, groups, cache, {}};
  std::unique_ptr<Report> report;
  std::unique_ptr<Gate> gate;
  const auto complaint = core::complaint_of([&] {
    check_registration(options, device);
    job.participants = find_participants(options, job.calls, *transport, groups.devices());
    const bool exchanges = may_have_links(device, topology) && !libraries_of(job).empty();
    check_device_memory(options, largest_size(line.calls),
                        exchanges ? largest_exchange(line.calls, world.n_ranks()) : core::Bytes{}, device,
                        topology.n_local_ranks(world.rank()));
    check_memory(options, largest_size(line.calls), topology, world.rank(), job.participants.size());
    if (world.rank() == 0 && options.task == Task::measure) report = std::make_unique<Report>(options);
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  const auto unconnected = core::complaint_of([&] {
    if (!device.is_host()) connect_devices(job);
  });
  if (const auto bad = session.agree(unconnected)) return core::to_int(*bad);
  if (!options.baseline.empty()) {
    const auto no_gate = core::complaint_of([&] {
      if (report != nullptr) gate = std::make_unique<Gate>(options, job.calls, blank_document(job));
    });
    if (const auto bad = session.agree(no_gate)) return core::to_int(*bad);
  }
  if (!is_demo) return measure(job, report.get(), gate.get());
  const bool is_right = run_demo(world, topology, *transport, job.participants);
  return core::to_int(is_right ? core::ExitCode::ok : core::ExitCode::failed);
}

}  // namespace lockstep::reduce_all
