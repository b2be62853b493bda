// The first use of everything, by 32 threads at once, on a GPU runtime without a lock that would put
// them in order (idle_hip). Run under ThreadSanitizer too.
#include <aotriton/aotriton.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/dispatch/support.h"
#include "tools/bench/idle_hip.h"

namespace {

constexpr int kThreads = 32;

TEST(ThreadsTest, FirstUseByManyAtOnce) {
  support::Images images;
  images.Install("gfx942");
  std::atomic<int> waiting{0}, failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto expect = [&](aotriton_status status, aotriton_status expected) { failures += status != expected; };
      aotriton_attn_fwd_args forward = support::Call();
      aotriton_attn_fwd_args persistent = support::Call();
      persistent.is_windowed = 1;
      persistent.persistent_counter = reinterpret_cast<int32_t*>(0xE0010);
      aotriton_attn_bwd_args backward = support::BackwardCall();
      aotriton_tensor mask = support::Tensor(AOTRITON_FLOAT32, {2, 8, 100, 70}, 0xF0000);
      ++waiting;
      while (waiting.load() < kThreads) std::this_thread::yield();
      for (int i = 0; i < 2 * idle_hip::kDevices; ++i) {
        const hipStream_t stream = idle_hip::StreamOf((t + i) % idle_hip::kDevices);
        switch ((t + i) % 5) {  // no multiple of the number of devices: each op comes to each
          case 0: expect(aotriton_attn_fwd(&forward, stream), 0); break;
          case 1: expect(aotriton_attn_bwd(&backward, stream), 0); break;
          case 2: expect(aotriton_attn_fwd(&persistent, stream), 0); break;
          default:
            expect(aotriton_debug_simulate_encoded_softmax(&mask, 0.5f, reinterpret_cast<uint64_t*>(0xE0000),
                                                           reinterpret_cast<uint64_t*>(0xE0008), 0, stream),
                   0);
        }
        expect(aotriton_set_images_dir(nullptr), 0);
        aotriton_attn_fwd_args refused = forward;
        refused.q.dtype = 100 + t;
        expect(aotriton_attn_fwd(&refused, stream), hipErrorNotSupported);
        failures += std::string(aotriton_last_error()).find("q has dtype " + std::to_string(100 + t) + ";") != 0;
      }
      // All of them on all devices, whoever comes first.
      for (int device = 0; device < idle_hip::kDevices; ++device) {
        expect(aotriton_attn_fwd(&forward, idle_hip::StreamOf(device)), 0);
        expect(aotriton_attn_fwd(&persistent, idle_hip::StreamOf(device)), 0);
        expect(aotriton_attn_bwd(&backward, idle_hip::StreamOf(device)), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(idle_hip::Loads(), 6 * idle_hip::kDevices);  // two of the forward, three of the backward, the mask: each once a device
}

}  // namespace
