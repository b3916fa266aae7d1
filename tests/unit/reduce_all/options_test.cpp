#include "reduce_all/options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/registry.hpp"

namespace lockstep::reduce_all {
namespace {

using Words = std::vector<std::string>;

Options parse(const Words& words) {
  const CommandLine line = parse_command_line(words);
  EXPECT_FALSE(line.error.has_value()) << (line.error ? line.error->what() : "");
  return line.options;
}

TEST(Options, DefaultsAreThoseOfTheHelp) {
  const Options o = parse({});
  EXPECT_EQ(o.task, Task::measure);
  EXPECT_EQ(o.min_bytes.value, 8u);
  EXPECT_EQ(o.max_bytes.value, 64u << 20);
  EXPECT_EQ(o.step_factor, 2);
  EXPECT_FALSE(o.step_bytes.has_value());
  EXPECT_EQ(o.dtype, std::vector{core::DType::float32});
  EXPECT_EQ(o.op, std::vector{comm::ReduceOp::sum});
  EXPECT_TRUE(o.algorithm.empty());
  EXPECT_EQ(o.warmup_iterations, 5);
  EXPECT_EQ(o.check, 4);
  EXPECT_EQ(o.timeout.value, 60);
  EXPECT_EQ(o.max_time.value, 0);
}

TEST(Options, TakesTheShortFlagsOfNcclTests) {
  const Options o = parse({"-b", "64K", "-e", "1G",   "-f", "4",   "-n", "20", "-w", "1",
                           "-c", "1",   "-d", "half", "-o", "max", "-g", "1",  "-t", "1"});
  EXPECT_EQ(o.min_bytes.value, 65536u);
  EXPECT_EQ(o.max_bytes.value, 1u << 30);
  EXPECT_EQ(o.step_factor, 4);
  EXPECT_EQ(o.iterations, 20);
  EXPECT_EQ(o.warmup_iterations, 1);
  EXPECT_EQ(o.check, 1);
  EXPECT_EQ(o.dtype, std::vector{core::DType::float16});
  EXPECT_EQ(o.op, std::vector{comm::ReduceOp::max});
}

TEST(Options, EveryShortFlagHasALongName) {
  const Options o =
      parse({"--min-bytes=16", "--max-bytes=32", "--step-bytes=4", "--iterations=7", "--warmup-iterations=0",
             "--check=0", "--dtype=int8", "--op=avg", "--ngpus=1", "--nthreads=1"});
  EXPECT_EQ(o.min_bytes.value, 16u);
  EXPECT_EQ(o.max_bytes.value, 32u);
  EXPECT_EQ(o.step_bytes->value, 4u);
  EXPECT_EQ(o.iterations, 7);
  EXPECT_EQ(o.warmup_iterations, 0);
  EXPECT_EQ(o.check, 0);
  EXPECT_EQ(o.dtype, std::vector{core::DType::int8});
  EXPECT_EQ(o.op, std::vector{comm::ReduceOp::avg});
}

TEST(Options, TakesTheLongFlagsOfNcclTests) {
  const Options o = parse({"--minbytes", "16", "--maxbytes", "32", "--stepbytes", "4", "--datatype", "half", "--iters",
                           "7", "--warmup_iters", "2", "-T", "5", "-J", "r.json"});
  EXPECT_EQ(o.min_bytes.value, 16u);
  EXPECT_EQ(o.max_bytes.value, 32u);
  EXPECT_EQ(o.step_bytes->value, 4u);
  EXPECT_EQ(o.dtype, std::vector{core::DType::float16});
  EXPECT_EQ(o.iterations, 7);
  EXPECT_EQ(o.warmup_iterations, 2);
  EXPECT_EQ(o.timeout.value, 5);
  EXPECT_EQ(o.json, "r.json");
}

TEST(Options, TakesOfNcclTestsWhatIsDoneAnyway) {
  EXPECT_NO_THROW(static_cast<void>(
      parse({"-z", "1", "-p", "1", "-C", "0", "-a", "3", "-m", "1", "-r", "0", "-G", "0", "-N", "1"})));
  for (const char* flag : {"-z", "-p", "-C", "-a", "-m", "-r", "-G", "-N"}) {
    const CommandLine line = parse_command_line({flag, "2"});
    ASSERT_TRUE(line.error) << flag;
    EXPECT_EQ(line.error->code(), core::ExitCode::usage);
    EXPECT_FALSE(line.error->problem().fix.empty()) << flag;
  }
}

TEST(Options, RegistersAsAskedInOurWordsOrThoseOfNcclTests) {
  using comm::Registration;
  EXPECT_EQ(parse({}).registration, Registration::none);
  for (const Registration registration : comm::all_registrations)
    EXPECT_EQ(parse({"--register", std::string{comm::name(registration)}}).registration, registration);
  EXPECT_EQ(parse({"-R", "0"}).registration, Registration::none);
  EXPECT_EQ(parse({"-R", "1"}).registration, Registration::local);
  EXPECT_EQ(parse({"--local_register", "2"}).registration, Registration::symmetric);
  for (const char* word : {"3", "symetric", ""}) {
    const CommandLine line = parse_command_line({"-R", word});
    ASSERT_TRUE(line.error) << word;
    EXPECT_EQ(line.error->code(), core::ExitCode::usage);
    EXPECT_EQ(line.error->problem().where, "--register");
  }
  EXPECT_TRUE(parse_command_line({"--register", "local", "--device", "host"}).error);
  EXPECT_FALSE(parse_command_line({"--register", "none", "--device", "host"}).error);
}

TEST(Options, TakesTheLongFlags) {
  const Options o = parse({"--collective",
                           "reduce_scatter",
                           "--in-place",
                           "--buffers",
                           "cold",
                           "--sync",
                           "none",
                           "--ranks-per-node",
                           "2",
                           "--max-time",
                           "2min",
                           "--timeout",
                           "3s",
                           "--seed",
                           "42",
                           "--expect-ranks",
                           "4",
                           "--nproc",
                           "4",
                           "--json",
                           "a.json",
                           "--csv",
                           "a.csv",
                           "--samples",
                           "--verdict",
                           "--inject",
                           "wrong:1:7",
                           "--algorithm",
                           "ring,shm,ring"});
  EXPECT_EQ(o.collective, comm::Collective::reduce_scatter);
  EXPECT_TRUE(o.in_place);
  EXPECT_EQ(o.buffers, BufferMode::cold);
  EXPECT_EQ(o.sync, Sync::none);
  EXPECT_EQ(o.ranks_per_node, 2);
  EXPECT_EQ(o.max_time.value, 120);
  EXPECT_EQ(o.timeout.value, 3);
  EXPECT_EQ(o.seed, 42u);
  EXPECT_EQ(o.expect_ranks, 4);
  EXPECT_EQ(o.nproc, 4);
  EXPECT_EQ(o.json, "a.json");
  EXPECT_EQ(o.csv, "a.csv");
  EXPECT_TRUE(o.samples);
  EXPECT_TRUE(o.verdict);
  EXPECT_EQ(o.drill->named("wrong").at(0).number, 7u);
  EXPECT_EQ(o.algorithm, (Words{"ring", "shm"}));
}

TEST(Options, ListsAndAll) {
  EXPECT_EQ(parse({"-d", "all"}).dtype.size(), core::all_dtypes.size());
  EXPECT_TRUE(parse({"-d", "all"}).is_every_dtype);
  EXPECT_EQ(parse({"-o", "all"}).op.size(), comm::all_reduce_ops.size());
  EXPECT_EQ(parse({"-d", "int8,float64"}).dtype, (std::vector{core::DType::int8, core::DType::float64}));
  EXPECT_EQ(parse({"-o", "min,max"}).op, (std::vector{comm::ReduceOp::min, comm::ReduceOp::max}));
  EXPECT_TRUE(parse({"--algorithm", "all"}).algorithm.empty());
  EXPECT_TRUE(parse({"--algorithm", "ring,all"}).algorithm.empty());
}

TEST(Options, WhatIsKeptOrComparedIsVisited) {
  EXPECT_EQ(parse({}).visits, 0);
  EXPECT_EQ(parse({"--json", "f"}).visits, 10);
  EXPECT_EQ(parse({"--json", "f", "--visits", "0"}).visits, 0);
  const Options o = parse({"--baseline", "a,b", "--tolerance", "7.5%", "--junit", "x"});
  EXPECT_EQ(o.visits, 10);
  EXPECT_EQ(o.baseline, (Words{"a", "b"}));
  EXPECT_EQ(o.task, Task::measure);
  EXPECT_DOUBLE_EQ(o.tolerance, 0.075);
  EXPECT_EQ(o.junit, "x");
  const Options files = parse({"--baseline", "a", "--now", "b,c"});
  EXPECT_EQ(files.task, Task::compare);
  EXPECT_EQ(files.now, (Words{"b", "c"}));
}

TEST(Options, TheLastOfARepeatedFlagCounts) {
  EXPECT_EQ(parse({"-b", "8", "-b", "16"}).min_bytes.value, 16u);
  EXPECT_TRUE(parse({"--algorithm", "ring", "--algorithm", "all"}).algorithm.empty());
}

TEST(Options, TasksThatNeedNoMpi) {
  EXPECT_EQ(parse({"--help"}).task, Task::help);
  EXPECT_EQ(parse({"-h"}).task, Task::help);
  EXPECT_EQ(parse({"--version"}).task, Task::version);
  EXPECT_EQ(parse({"--list"}).task, Task::list);
  EXPECT_EQ(parse({"--demo"}).task, Task::demo);
}

TEST(Options, KeepsTheArgumentsAsTyped) { EXPECT_EQ(parse({"-b", "64K"}).arguments, (Words{"-b", "64K"})); }

struct BadCase {
  Words words;
  std::string in_message;  ///< each message names its subject
};

class BadOptions : public testing::TestWithParam<BadCase> {};

TEST_P(BadOptions, AreUsageErrorsThatSayWhy) {
  const CommandLine line = parse_command_line(GetParam().words);
  ASSERT_TRUE(line.error.has_value());
  EXPECT_EQ(line.error->code(), core::ExitCode::usage);
  EXPECT_NE(std::string{line.error->what()}.find(GetParam().in_message), std::string::npos) << line.error->what();
}

INSTANTIATE_TEST_SUITE_P(
    All, BadOptions,
    testing::Values(
        BadCase{{"--algorithm", "rnig"}, "did you mean 'ring'?"},
        BadCase{{"--algorithm", "ring,"}, "unknown algorithm ''"},
        BadCase{{"-d", "floot32"}, "did you mean 'float32'?"}, BadCase{{"-d", "int8,"}, "unknown dtype ''"},
        BadCase{{"-o", "summ"}, "did you mean 'sum'?"}, BadCase{{"--device", "gpu"}, "did you mean 'cuda'?"},
        BadCase{{"--device", "cpu"}, "did you mean 'host'?"},
        BadCase{{"--collective", "allreduce"}, "did you mean 'all_reduce'?"},
        BadCase{{"--buffers", "warm"}, "hot, dirty, cold"}, BadCase{{"--sync", "both"}, "barrier, none"},
        BadCase{{"--algoritm", "ring"}, "did you mean '--algorithm'?"},
        BadCase{{"-y", "1"}, "unknown flag '-y'\n  fix: --help"}, BadCase{{"-B", "8"}, "did you mean '-b'?"},
        BadCase{{"-w", "3000000000"}, "is out of range"}, BadCase{{"--jsn=f"}, "did you mean '--json'?"},
        BadCase{{"surplus"}, "unexpected argument 'surplus'"}, BadCase{{"-b"}, "--min-bytes needs a value"},
        BadCase{{"-b", "-e", "8"}, "--min-bytes"}, BadCase{{"-b", "8X"}, "--min-bytes"},
        BadCase{{"-b", "0"}, "--min-bytes"}, BadCase{{"-b", "-8"}, "-b"}, BadCase{{"-e", "many"}, "--max-bytes"},
        BadCase{{"-b", "2K", "-e", "1K"}, "above the largest"}, BadCase{{"-b", "7"}, "use 8"},
        BadCase{{"-b", "4", "-d", "int8,float64"}, "float64"}, BadCase{{"-b", "8", "-i", "6"}, "--step-bytes"},
        BadCase{{"-i", "0"}, "--step-bytes"}, BadCase{{"-i", "4", "-f", "2"}, "one of the two"},
        BadCase{{"-i", "4", "-e", "1G"}, "more than"}, BadCase{{"-f", "1"}, "--step-factor"},
        BadCase{{"-f", "0.5"}, "--step-factor"}, BadCase{{"-f", "x"}, "--step-factor"},
        BadCase{{"-f", "nan"}, "--step-factor"}, BadCase{{"-n", "0"}, "--iterations"},
        BadCase{{"-n", "2.5"}, "--iterations"}, BadCase{{"-n", "99999999999"}, "--iterations"},
        BadCase{{"-w", "x"}, "--warmup-iterations"}, BadCase{{"-c", "yes"}, "--check"}, BadCase{{"-g", "2"}, "--ngpus"},
        BadCase{{"-t", "4"}, "--nthreads"}, BadCase{{"--seed", "-1"}, "--seed"},
        BadCase{{"--max-time", "soon"}, "--max-time"}, BadCase{{"--timeout", "x"}, "--timeout"},
        BadCase{{"--nproc", "0"}, "--nproc"}, BadCase{{"--nproc", "99999"}, "--nproc"},
        BadCase{{"--demo", "--json", "f"}, "--demo"}, BadCase{{"--demo", "--inject", "wrong:1"}, "--inject"},
        BadCase{{"--demo", "-d", "int8"}, "--dtype"}, BadCase{{"--timeout", "0.5"}, "--timeout"},
        BadCase{{"--expect-ranks", "none"}, "--expect-ranks"}, BadCase{{"--ranks-per-node", "0"}, "--ranks-per-node"},
        BadCase{{"--json", ""}, "an empty value"}, BadCase{{"--json", "f", "--csv", "f"}, "are the same"},
        BadCase{{"--samples"}, "--json"}, BadCase{{"--collective", "all_gather", "-o", "max"}, "reduces nothing"},
        BadCase{{"--inject", "stop:1"}, "--inject"}, BadCase{{"--inject", "wrong:1", "-c", "0"}, "--check"},
        BadCase{{"--junit", "f"}, "--junit"}, BadCase{{"--tolerance", "5"}, "--baseline"},
        BadCase{{"--baseline", "f", "--tolerance", "-1"}, "percent"},
        BadCase{{"--baseline", "f", "--tolerance", "5x"}, "--tolerance"}, BadCase{{"--baseline", "a,"}, "is empty"},
        BadCase{{"--baseline", "f", "--json", "f"}, "would be overwritten"},
        BadCase{{"--baseline", "f", "--json", "g", "--junit", "g"}, "are the same"},
        BadCase{{"--baseline", "f", "--visits", "0"}, "nothing to compare"},
        BadCase{{"--in-place=maybe"}, "--in-place"}));

}  // namespace
}  // namespace lockstep::reduce_all
