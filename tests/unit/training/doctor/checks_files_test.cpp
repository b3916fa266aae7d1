#include "unit/training/doctor/fixture.hpp"

namespace lockstep::training::doctor {
namespace {

TEST(DoctorTemporaryFiles, AreNeededByMpi) {
  Job job = healthy_job(2, 1);
  expect(check_temporary_folder(job), Verdict::ok, "can be made");
  job.ranks[1].missing_temporary = "/gone";
  expect(check_temporary_folder(job), Verdict::warning, "TMPDIR is '/gone', which does not exist on node1", "mkdir -p");
  job.ranks[1].temporary = "'/nosuch': Read-only file system";
  expect(check_temporary_folder(job), Verdict::fail,
         "MPI cannot keep its files in '/nosuch': Read-only file system on node1", "TMPDIR");
}

TEST(DoctorRecipe, MustFitRanksAndSet) {
  Job job = healthy_job(1, 2);
  expect(check_recipe(job), Verdict::skipped, "not checked: --recipe R is not given");
  job.request.recipe = Recipe{.name = "mine", .model = "mnist_cnn", .batch = 64};
  expect(check_recipe(job), Verdict::skipped, "the set cannot be read");
  job.need = Need{.recipe = *job.request.recipe, .checkpoint = {2'000'000}};
  expect(check_recipe(job), Verdict::ok, "mine: model mnist_cnn, batch 64, a checkpoint of 2 MB");
  job.misfit = core::Error{core::ExitCode::usage, {.what = "3 ranks", .where = "lanes", .expected = "2 or 4 ranks"}};
  expect(check_recipe(job), Verdict::fail, "3 ranks (lanes)", "2 or 4 ranks");
}

TEST(DoctorData, IsOpenedOnEachNode) {
  Job job = healthy_job(2, 1);
  expect(check_data(job), Verdict::ok, "1000 samples of uint8 [28, 28], on Lustre; 2 files of the right size");
  job.ranks[0].node.data.n_looked = 1;
  expect(check_data(job), Verdict::ok, "1 of 2 files checked");
  job.ranks[1].node.data.complaint = "cannot read '/set/manifest.json': No such file or directory";
  expect(check_data(job), Verdict::fail, "No such file or directory on node1", "mounted");
  job.request.data.clear();
  expect(check_data(job), Verdict::skipped, "not checked: --data SET is not given");
}

TEST(DoctorReadSpeed, SaysWhatIsFromThePageCache) {
  Job job = healthy_job(1, 1);
  SetFacts& set = job.ranks.front().node.data;
  expect(check_read_speed(job), Verdict::ok, "1.02 GB/s of 256 MB in 250 ms, not from the page cache");
  set.cached_percent = 100;
  expect(check_read_speed(job), Verdict::ok, "100 % of it from the page cache");
  set.cached_percent = -1;
  expect(check_read_speed(job), Verdict::ok, "maybe from the page cache");
}

TEST(DoctorReadSpeed, MayBeTooLow) {
  Job job = healthy_job(1, 1);
  SetFacts& set = job.ranks.front().node.data;
  set.seconds = 10;
  expect(check_read_speed(job), Verdict::warning, "0.03 GB/s", "--stage FOLDER");
  set.n_read = 1'000'000;
  expect(check_read_speed(job), Verdict::ok, "too little data to judge");
  set.n_read = 0;
  expect(check_read_speed(job), Verdict::skipped, "no samples");
  set.unread = "cannot read bytes [0, 9) of 's.h5': Input/output error";
  expect(check_read_speed(job), Verdict::fail, "Input/output error", "shard verify");
  set.complaint = "gone";
  expect(check_read_speed(job), Verdict::skipped, "the set cannot be read");
  job.request.data.clear();
  expect(check_read_speed(job), Verdict::skipped, "not given");
}

TEST(DoctorReadSpeed, NamesTheNodeThatIsMuchSlower) {
  Job job = healthy_job(3, 1);
  expect(check_read_speed(job), Verdict::ok, "slowest on node0");
  job.ranks[1].node.data.seconds = 1;
  expect(check_read_speed(job), Verdict::warning, "slowest on node1: 0.26 GB/s", "--exclude");
}

TEST(DoctorClasses, AreTheSameInBothSets) {
  Job job = healthy_job(1, 1);
  expect(check_classes(job), Verdict::ok, "the same 2 in both");
  NodeFacts& node = job.ranks.front().node;
  node.val.classes = {"val"};
  expect(check_classes(job), Verdict::fail, "2 classes in --data, 1 in --val", "shard stat");
  node.val.classes = {"cat", "cow"};
  expect(check_classes(job), Verdict::fail, "class 1 is 'dog' in --data, 'cow' in --val");
  node.val = {.x = "uint8 [32, 32]", .classes = {"cat", "dog"}};
  expect(check_classes(job), Verdict::fail, "samples are uint8 [28, 28] in --data, uint8 [32, 32] in --val");
  node.val.complaint = "cannot read '/val/manifest.json'";
  expect(check_classes(job), Verdict::fail, "--val: cannot read", "spelling");
  job.request.val.clear();
  expect(check_classes(job), Verdict::skipped, "not both given");
}

TEST(DoctorCheckpoints, CanBeWrittenOnEachNode) {
  Job job = healthy_job(2, 1);
  expect(check_checkpoint_folder(job), Verdict::ok, "writable, on Lustre");
  job.request.checkpoints = "/scratch/me/new";
  expect(check_checkpoint_folder(job), Verdict::ok, "writable in '/scratch/me', on Lustre");
  job.ranks[1].node.checkpoints.complaint = "Disk quota exceeded";
  expect(check_checkpoint_folder(job), Verdict::fail, "cannot write in '/scratch/me': Disk quota exceeded on node1",
         "quota");
  job = healthy_job(2, 1);
  for (Facts& facts : job.ranks) {
    facts.node.checkpoints.is_in_home = true;
    facts.node.checkpoints.file_system = "NFS";
  }
  expect(check_checkpoint_folder(job), Verdict::warning, "on NFS, in the home directory", "scratch");
  for (Facts& facts : job.ranks) facts.node.checkpoints.is_network = false;
  expect(check_checkpoint_folder(job), Verdict::ok, "writable");
  job.request.checkpoints.clear();
  expect(check_checkpoint_folder(job), Verdict::skipped, "not given");
}

TEST(DoctorLocks, MayBeRefused) {
  Job job = healthy_job(1, 1);
  expect(check_locks(job), Verdict::ok, "flock works, fcntl works");
  job.ranks.front().node.checkpoints.flock = "fails (Function not implemented)";
  expect(check_locks(job), Verdict::warning, "flock fails (Function not implemented), fcntl works", "-o flock");
  job.ranks.front().node.checkpoints.complaint = "Read-only file system";
  expect(check_locks(job), Verdict::skipped, "this folder is not writable");
}

TEST(DoctorSameFolder, IsSeenByAllNodes) {
  Job job = healthy_job(3, 1);
  expect(check_same_folder(job), Verdict::ok, "all nodes see a file that rank 0 made");
  job.ranks[2].node.checkpoints.meeting = "not seen within 10 s";
  expect(check_same_folder(job), Verdict::fail, "'/scratch/me' is not seen within 10 s on node2", "all nodes share");
  for (Facts& facts : job.ranks) facts.node.checkpoints.meeting.clear();
  expect(check_same_folder(job), Verdict::skipped, "rank 0 cannot make a file there");
  expect(check_same_folder(healthy_job(1, 2)), Verdict::skipped, "one node");
}

TEST(DoctorRoom, IsForTheCheckpointsAskedFor) {
  Job job = healthy_job(2, 1);
  expect(check_room(job), Verdict::ok, "500 GB free; --recipe R adds the size of a checkpoint");
  job.need = Need{.checkpoint = {100'000'000'000}};
  job.request.n_checkpoints = 3;
  expect(check_room(job), Verdict::ok, "500 GB free, 300 GB needed for 3 checkpoints of 100 GB");
  job.ranks[1].node.checkpoints.free = 200'000'000'000;
  expect(check_room(job), Verdict::fail, "200 GB free, 300 GB needed", "--keep");
  job.ranks[0].node.checkpoints.size = 0;
  expect(check_room(job), Verdict::skipped, "does not report");
  job.request.checkpoints.clear();
  expect(check_room(job), Verdict::skipped, "not given");
}

}  // namespace
}  // namespace lockstep::training::doctor
