// What data loaders are made of: queues between threads, orders, samplers of streams, datasets of chunks.
#include <cresset/nn/chunk_dataset.h>
#include <cresset/serialize.h>

#include <numeric>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "error_of.h"

using namespace cresset;

namespace {
/// Chunk i holds the numbers from 10 i on, i + 1 of them.
struct Steps : data::datasets::ChunkDataReader<int> {
  explicit Steps(std::size_t chunks, std::size_t broken = 1000) : chunks(chunks), broken(broken) {}
  std::vector<int> read_chunk(std::size_t i) override {
    CRESSET_CHECK(i != broken, "chunk ", i, " cannot be read");
    std::vector<int> out(i + 1);
    std::iota(out.begin(), out.end(), static_cast<int>(10 * i));
    return out;
  }
  std::size_t chunk_count() override { return chunks; }
  void reset() override {}
  std::size_t chunks, broken;
};
using Sequential = data::samplers::SequentialSampler;
using Chunks = data::datasets::ChunkDataset<Steps, Sequential, Sequential>;

auto chunks_of(Steps reader, data::datasets::ChunkDatasetOptions options) {
  return data::datasets::make_shared_dataset<Chunks>(reader, Sequential(0), Sequential(0), options);
}
}  // namespace

TEST(DataShuttle, CountsWhatIsOnItsWay) {
  data::detail::DataShuttle<int, int> shuttle;
  EXPECT_FALSE(shuttle.pop_result());
  shuttle.push_job(1);
  shuttle.push_job(2);
  EXPECT_EQ(shuttle.in_flight_jobs(), 2u);
  EXPECT_EQ(shuttle.pop_job(), 1);
  EXPECT_EQ(error_of([&] { shuttle.pop_result(std::chrono::milliseconds(1)); }),
            "Timeout in DataLoader queue while waiting for next batch (timeout was 1 ms)");
  shuttle.push_result(10);
  shuttle.drain();
  EXPECT_EQ(shuttle.in_flight_jobs(), 0u);
}

TEST(DataShuttle, ResultsComeInOrder) {
  struct Result {
    std::size_t sequence_number;
  };
  data::detail::sequencers::OrderedSequencer<Result> sequencer(3);
  std::vector<std::size_t> arriving = {2, 0, 1};
  std::size_t at = 0;
  const auto next = [&] { return at < arriving.size() ? std::optional(Result{arriving[at++]}) : std::nullopt; };
  for (const std::size_t i : {0u, 1u, 2u}) EXPECT_EQ(sequencer.next(next)->sequence_number, i);
  EXPECT_FALSE(sequencer.next(next));
}

TEST(Samplers, StreamsAreCounted) {
  data::samplers::StreamSampler sampler(5);
  EXPECT_EQ(sampler.next(3)->size(), 3u);
  std::stringstream file;
  save(sampler, file);
  data::samplers::StreamSampler other(5);
  load(other, file);
  EXPECT_EQ(other.next(3)->size(), 2u);
  EXPECT_FALSE(other.next(3));
  other.reset(1);
  EXPECT_EQ(other.next(3)->size(), 1u);
}

TEST(DataLoader, IteratorsAreCopiesOrAtTheEnd) {
  struct Numbers : data::datasets::Dataset<Numbers, int> {
    int get(std::size_t i) override { return static_cast<int>(i); }
    std::optional<std::size_t> size() const override { return 4; }
  };
  auto loader = data::make_data_loader(Numbers().map(data::transforms::Collate<int>(
                                           [](const std::vector<int>& batch) { return std::accumulate(batch.begin(), batch.end(), 0); })),
                                       Sequential(4), 2);
  auto first = loader->begin(), copy = first, end = loader->end();
  EXPECT_TRUE(first == copy && first != end);
  EXPECT_EQ(*first, 1);
  ++first;
  EXPECT_EQ(*copy, 5);
  EXPECT_TRUE(++first == end);
  EXPECT_EQ(error_of([&] { ++first; }), "Attempted to increment iterator past the end");
  EXPECT_EQ(error_of([&] { *end; }), "Dereferencing the DataLoader's past-the-end iterator is not allowed");
}

TEST(ChunkDataset, BatchesCrossChunks) {
  auto loader = data::make_data_loader(chunks_of(Steps(3), {1, 4}), data::DataLoaderOptions(4));
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::vector<int>> batches(loader->begin(), loader->end());
    EXPECT_EQ(batches, (std::vector<std::vector<int>>{{0, 10, 11, 20}, {21, 22}}));
  }
  std::multiset<int> seen;
  auto threads = data::make_data_loader(chunks_of(Steps(6), {3, 2, 4, 2}), data::DataLoaderOptions(2).workers(2));
  for (auto& batch : *threads) seen.insert(batch.begin(), batch.end());
  EXPECT_EQ(seen.size(), 21u);
  EXPECT_EQ(seen.count(55), 1u);
}

TEST(ChunkDataset, ContinuesFromAFile) {
  Sequential sampler(3);
  sampler.next(2);
  std::stringstream file;
  save(sampler, file);
  auto dataset = chunks_of(Steps(3), {1, 4});
  load(*dataset, file);
  dataset->reset();
  EXPECT_EQ(dataset->get_batch(4), (std::vector<int>{20, 21, 22}));
  EXPECT_FALSE(dataset->get_batch(4));
}

TEST(ChunkDataset, ErrorsArrive) {
  auto dataset = chunks_of(Steps(2, 1), {1, 1});
  EXPECT_EQ(error_of([&] { dataset->get_batch(1); }), "Dataset needs to call reset() before calling get_batch().");
  dataset->reset();
  EXPECT_EQ(dataset->get_batch(1), (std::vector<int>{0}));
  EXPECT_EQ(error_of([&] { dataset->get_batch(1); }),
            "Caught exception in DataLoader worker thread. Original message: chunk 1 cannot be read");
  EXPECT_EQ(error_of([&] { data::datasets::ChunkDatasetOptions(1, 10, 5); }),
            "Cache size is less than batch size. Cache needs to be large enough to hold at least one batch.");
}
