// The second late half of the programs from public reports (tests/outside/49-second-aside.md), in
// C++: each does steadily what its report describes, for some seconds: `second NAME SECONDS DIR`.
// g++ -O1 -g -w second.cc -o second
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <malloc.h>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#define KEEP __attribute__((noinline, noclone))

using Clock = std::chrono::steady_clock;

static Clock::time_point end;
// A fourth argument asks for the repaired form, to compare with.
static bool is_repaired;

static bool is_over() { return Clock::now() >= end; }

// S16: an operation on ciphertexts takes some large polynomials and gives them back.
using Polynomial = std::vector<unsigned long>;

KEEP static unsigned long eval_add(const Polynomial &a, const Polynomial &b, size_t size) {
    Polynomial sum(a.begin(), a.begin() + size), copy(b.begin(), b.begin() + size);
    for (size_t n = 0; n < size; n++) {
        sum[n] += copy[n];
        if (sum[n] >= 1152921504606584833) sum[n] -= 1152921504606584833;
    }
    return sum[size / 2];
}

static void add_ciphertexts() {
    Polynomial a(2 << 20, 1), b(2 << 20, 2);
    unsigned long sum = 0, count = 0;
    if (is_repaired) {
        mallopt(M_MMAP_MAX, 0);
        mallopt(M_TRIM_THRESHOLD, -1);
    }
    for (; !is_over(); count++) sum += eval_add(a, b, (1 << 20) + (count % 8 << 16));
    std::cerr << count << " sums, " << sum % 10 << "\n";
}

// S27: a model is exported line by line.
KEEP static void export_model(std::ofstream &out, int states) {
    for (int n = 0; n < states && !is_over(); n++) {
        out << "state " << n << " [1.0] init";
        if (is_repaired)
            out << '\n';
        else
            out << std::endl;
        out << "\taction 0 -> " << (n * 7919) % states << " : 0.5";
        if (is_repaired)
            out << '\n';
        else
            out << std::endl;
    }
}

static void model_export() {
    long count = 0;
    for (; !is_over(); count++) {
        std::ofstream out("model.drn", std::ios_base::binary);
        export_model(out, 50000);
    }
    std::cerr << count << " models\n";
}

// S11: the server of a model looks for tasks, and sleeps for 5 ms.
struct Task { int id; std::atomic<bool> is_done{false}; };

static std::mutex mutex_tasks, mutex_results;
static std::condition_variable has_task, has_result;
static std::deque<Task *> queue_tasks;

KEEP static Task *take_task() {
    if (is_repaired) {
        std::unique_lock<std::mutex> lock(mutex_tasks);
        has_task.wait_for(lock, std::chrono::seconds(1), [] { return !queue_tasks.empty(); });
        if (queue_tasks.empty()) return nullptr;
        Task *task = queue_tasks.front();
        queue_tasks.pop_front();
        return task;
    }
    {
        std::lock_guard<std::mutex> lock(mutex_tasks);
        if (!queue_tasks.empty()) {
            Task *task = queue_tasks.front();
            queue_tasks.pop_front();
            return task;
        }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return nullptr;
}

static void update_slots() {
    while (!is_over())
        if (Task *task = take_task()) {
            std::lock_guard<std::mutex> lock(mutex_results);
            task->is_done = true;
            has_result.notify_all();
        }
}

KEEP static void request_completion(int id) {
    Task task{id};
    {
        std::lock_guard<std::mutex> lock(mutex_tasks);
        queue_tasks.push_back(&task);
        has_task.notify_one();
    }
    std::unique_lock<std::mutex> lock(mutex_results);
    while (!task.is_done) has_result.wait(lock);
}

static void serve_model() {
    std::thread server([] {
        while (!is_over()) update_slots();
        std::_Exit(0);
    });
    for (int count = 0;; count++) {
        request_completion(count);
        if (count % 100 == 0) std::cerr << count << " completions\n";
    }
}

// S44: isotope patterns are convolved; there are no subnormal numbers worth a word.
KEEP static void convolve(const std::vector<double> &left, const std::vector<double> &right,
                          std::vector<double> &result) {
    for (size_t i = 0; i < result.size(); i++) {
        double sum = 0;
        for (size_t j = i < right.size() ? 0 : i + 1 - right.size();
             j <= i && j < left.size(); j++)
            sum += left[j] * right[i - j];
        result[i] = sum;
    }
}

static void find_features() {
    std::vector<double> left(400), right(400), result(799);
    for (size_t n = 0; n < 400; n++) left[n] = right[n] = 1.0 / (n + 1);
    long count = 0;
    for (; !is_over(); count++) convolve(left, right, result);
    std::cerr << count << " patterns of " << result[9] << "\n";
}

int main(int count, char **arguments) {
    if (count < 4 || chdir(arguments[3])) return 2;
    end = Clock::now() + std::chrono::milliseconds(long(1000 * atof(arguments[2])));
    is_repaired = count > 4;
    std::string name = arguments[1];
    if (name == "add-ciphertexts") add_ciphertexts();
    else if (name == "model-export") model_export();
    else if (name == "serve-model") serve_model();
    else if (name == "find-features") find_features();
    else return 2;
}
