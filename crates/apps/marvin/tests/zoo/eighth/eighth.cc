// Six programs after public reports, C++. Usage: eighth CASE SECONDS FOLDER
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <locale>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#define KEEP __attribute__((noinline))

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

static Clock::time_point deadline;
static fs::path folder;
static std::atomic<long> done{0};
static char last_words[100];

static bool working() { return Clock::now() < deadline; }

static void on_alarm(int) {
  char line[160];
  int n = snprintf(line, sizeof line, last_words, done.load());
  if (write(1, line, static_cast<size_t>(n)) < 0) _exit(1);
  _exit(0);
}

static void end_at(double seconds, const char *words) {
  strncpy(last_words, words, sizeof last_words - 1);
  signal(SIGALRM, on_alarm);
  itimerval t{};
  t.it_value.tv_sec = static_cast<time_t>(seconds);
  t.it_value.tv_usec = static_cast<suseconds_t>((seconds - static_cast<time_t>(seconds)) * 1e6);
  setitimer(ITIMER_REAL, &t, nullptr);
}

// chain-insert

struct BranchEntry {
  std::string block_id;
  uint32_t block_num;
  uint32_t timestamp;
};

struct BranchIndex {
  std::vector<BranchEntry> entries;

  KEEP void emplace(std::string id, uint32_t num) {
    entries.reserve(entries.size() + 1);
    entries.push_back(BranchEntry{std::move(id), num, num * 2});
  }
};

static void chain_insert() {
  while (working()) {
    BranchIndex index;
    for (uint32_t i = 0; i < 30000 && working(); i++) {
      index.emplace("b" + std::to_string(i), i);
      done++;
    }
  }
}

// step-parse

KEEP static double decode_argument(const std::string &text) {
  std::stringstream stream;
  stream.imbue(std::locale("C.UTF-8"));
  stream << text;
  double value = 0;
  stream >> value;
  return value;
}

KEEP static double read_arguments(const std::string &line) {
  double sum = 0;
  size_t at = 0;
  while (at < line.size()) {
    size_t comma = line.find(',', at);
    if (comma == std::string::npos) comma = line.size();
    sum += decode_argument(line.substr(at, comma - at));
    at = comma + 1;
  }
  return sum;
}

static void step_parse() {
  double sum = 0;
  while (working()) {
    sum += read_arguments("0.25,17.5,-3.125,88.,1.E2,0.5,4.75,12.0");
    done++;
  }
  if (sum == 1) puts("");
}

// grid-settings

class ServerProperties {
 public:
  ServerProperties() {
    for (int i = 0; i < 250; i++)
      properties_["property_number_" + std::to_string(i)] = "value of property " +
                                                            std::to_string(i);
  }
  KEEP std::map<std::string, std::string> map() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return properties_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> properties_;
};

KEEP static size_t get_server_property(const ServerProperties &server, const std::string &key) {
  auto config = server.map();
  auto at = config.find(key);
  return at == config.end() ? 0 : at->second.size();
}

static void grid_settings() {
  ServerProperties server;
  size_t sum = 0;
  while (working()) {
    sum += get_server_property(server, "property_number_" + std::to_string(done % 250));
    done++;
  }
  if (sum == 1) puts("");
}

// app-runtime

class WorkQueue {
 public:
  using Work = std::function<void()>;

  void push(Work work) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      queue_.push_back(std::move(work));
    }
    ready_.notify_one();
  }
  void cancel() {
    cancelled_ = true;
    ready_.notify_all();
  }
  KEEP bool blocking_pop(Work &work) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (queue_.empty()) {
      if (cancelled_) return false;
      flush_console();
      ready_.wait(lock);
    }
    work = std::move(queue_.front());
    queue_.pop_front();
    return true;
  }

 private:
  void flush_console() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Work> queue_;
  std::atomic<bool> cancelled_{false};
};

class AppRuntime {
 public:
  AppRuntime() : thread_([this] { run(); }) {}
  KEEP ~AppRuntime() {
    queue_.cancel();
    thread_.join();
  }
  void dispatch(WorkQueue::Work work) { queue_.push(std::move(work)); }

 private:
  KEEP void run() {
    WorkQueue::Work work;
    while (queue_.blocking_pop(work)) work();
  }

  WorkQueue queue_;
  std::thread thread_;
};

static void app_runtime() {
  while (working()) {
    AppRuntime runtime;
    runtime.dispatch([] { done++; });
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
  }
}

// fd-path

struct EmulatedFiles {
  std::unordered_map<std::string, std::string> created{{"/proc/cpuinfo", "processor"},
                                                       {"/proc/cmdline", "init"}};

  KEEP std::string get_fdpath(int fd) {
    return fs::canonical("/proc/self/fd/" + std::to_string(fd)).string();
  }
  KEEP int open_at(const char *path) {
    int fd = open(path, O_RDONLY);
    if (created.count(get_fdpath(fd))) return -1;
    return fd;
  }
};

static void fd_path() {
  fs::path deep = folder;
  for (const char *part : {"rootfs", "usr", "lib", "x86_64-linux-gnu", "game", "data", "maps"})
    deep /= part;
  fs::create_directories(deep);
  std::string file = (deep / "level.pak").string();
  std::ofstream(file) << "level\n";
  EmulatedFiles files;
  while (working()) {
    int fd = files.open_at(file.c_str());
    close(fd);
    done++;
  }
}

// market-consumer

class OmmBase {
 public:
  OmmBase() : dispatch_([this] { dispatch_loop(); }) {}
  KEEP void uninitialize() {
    std::lock_guard<std::mutex> lock(user_lock_);
    stopping_ = true;
    dispatch_.join();
  }

 private:
  KEEP void dispatch_loop() {
    while (!stopping_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::lock_guard<std::mutex> lock(user_lock_);
      messages_++;
    }
  }

  std::mutex user_lock_;
  std::atomic<bool> stopping_{false};
  long messages_ = 0;
  std::thread dispatch_;
};

class OmmConsumer {
 public:
  KEEP ~OmmConsumer() { base_.uninitialize(); }

 private:
  OmmBase base_;
};

static void market_consumer() {
  while (working()) {
    OmmConsumer consumer;
    std::this_thread::sleep_for(std::chrono::milliseconds(21));
    done++;
  }
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  std::string name = argv[1];
  double seconds = atof(argv[2]);
  folder = fs::path(argv[3]) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  deadline = Clock::now() + std::chrono::microseconds(static_cast<long>(seconds * 1e6));
  const char *things;
  if (name == "chain-insert") {
    chain_insert();
    things = "blocks";
  } else if (name == "step-parse") {
    step_parse();
    things = "lines";
  } else if (name == "grid-settings") {
    grid_settings();
    things = "settings";
  } else if (name == "app-runtime") {
    end_at(seconds, "app-runtime: %ld jobs\n");
    app_runtime();
    things = "jobs";
  } else if (name == "fd-path") {
    fd_path();
    things = "files";
  } else if (name == "market-consumer") {
    end_at(seconds, "market-consumer: %ld consumers\n");
    market_consumer();
    things = "consumers";
  } else {
    return 2;
  }
  printf("%s: %ld %s\n", name.c_str(), done.load(), things);
  return 0;
}
