// Eleventh half, letters AI: five C++ programs after public reports. Arguments: CASE SECONDS FOLDER.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>
#include <fcntl.h>
#include <unistd.h>

static std::string caseName, folder;
static double seconds;
static std::chrono::steady_clock::time_point began;
static volatile long things;

static bool running()
{
    auto d = std::chrono::steady_clock::now() - began;
    return std::chrono::duration<double>(d).count() < seconds;
}

static void report(const char* what)
{
    std::printf("%s: %ld %s\n", caseName.c_str(), things, what);
}

// shell-prompt
[[gnu::noinline]] static void print_prompt()
{
    for (int i = 0; i < 120; ++i)
        std::fputc(' ', stderr);
    std::fputc('\r', stderr);
    std::fputs("$ ", stderr);
}

static void run_shell()
{
    auto path = folder + "/terminal";
    int terminal = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (terminal < 0 || dup2(terminal, 2) < 0)
        std::exit(1);
    while (running()) {
        print_prompt();
        things = things + 1;
        if (things % 500 == 0)
            lseek(terminal, 0, SEEK_SET);
    }
    report("prompts");
}

// record-writer
class OutputBuffer {
public:
    ~OutputBuffer() { delete[] buffer_; }
    [[gnu::noinline]] void Emit(const char* data, std::size_t bytes)
    {
        Reserve(length_ + bytes);
        std::memcpy(buffer_ + length_, data, bytes);
        length_ += bytes;
    }
    std::size_t length() const { return length_; }

private:
    [[gnu::noinline]] void Reserve(std::size_t want)
    {
        if (want <= size_)
            return;
        std::size_t size = want;
        char* next = new char[size];
        if (buffer_)
            std::memcpy(next, buffer_, length_);
        delete[] buffer_;
        buffer_ = next;
        size_ = size;
    }
    char* buffer_ = nullptr;
    std::size_t size_ = 0, length_ = 0;
};

static void write_statement()
{
    double field[8] = {};
    while (running()) {
        OutputBuffer out;
        while (out.length() < 60000)
            out.Emit(reinterpret_cast<const char*>(field), sizeof field);
        things = things + 1;
    }
    report("statements");
}

// shader-asm
struct OpcodeEntry {
    const char* name;
    int opcode;
};

[[gnu::noinline]] static bool spvOpcodeTableNameLookup(
    const std::vector<OpcodeEntry>& table, const char* name, int* op)
{
    const std::size_t nameLength = std::strlen(name);
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (nameLength == std::strlen(table[i].name) &&
            !std::strncmp(name, table[i].name, nameLength)) {
            *op = table[i].opcode;
            return true;
        }
    }
    return false;
}

static void assemble()
{
    static std::vector<std::string> names;
    std::vector<OpcodeEntry> table;
    for (int i = 0; i < 360; ++i) {
        std::string suffix(static_cast<std::size_t>(8 + i % 23), static_cast<char>('a' + i % 26));
        names.push_back("GroupNonUniformImageSparse" + std::to_string(i) + suffix);
    }
    for (int i = 0; i < 360; ++i)
        table.push_back({names[i].c_str(), i});
    long sum = 0;
    while (running()) {
        for (int i = 0; i < 360; ++i) {
            int op = 0;
            if (spvOpcodeTableNameLookup(table, names[(i * 7 + 11) % 360].c_str(), &op))
                sum += op;
            things = things + 1;
        }
    }
    if (sum == 1)
        std::puts("one");
    report("instructions");
}

// scene-lights
static std::mutex light_mutex, mesh_mutex;

static void on_alarm(int)
{
    char line[100];
    int n = std::snprintf(line, sizeof line, "%s: %ld edits\n", caseName.c_str(), things);
    if (write(1, line, n) < 0)
        _exit(1);
    _exit(0);
}

static void update_light(int edits)
{
    for (int i = 0; i < edits; ++i) {
        std::lock_guard<std::mutex> light(light_mutex);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        std::lock_guard<std::mutex> mesh(mesh_mutex);
        things = things + 1;
    }
}

static void update_mesh(int edits)
{
    for (int i = 0; i < edits; ++i) {
        std::lock_guard<std::mutex> mesh(mesh_mutex);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        std::lock_guard<std::mutex> light(light_mutex);
        things = things + 1;
    }
}

static void live_render()
{
    std::signal(SIGALRM, on_alarm);
    alarm(static_cast<unsigned>(seconds));
    std::thread a(update_light, 1000000), b(update_mesh, 1000000);
    a.join();
    b.join();
    report("edits");
}

// mesh-triangles
struct compare {
    std::vector<double> dists;
    std::vector<double> const& coords;
    bool operator()(std::size_t i, std::size_t j) const
    {
        if (dists[i] != dists[j])
            return dists[i] < dists[j];
        return coords[2 * i] < coords[2 * j];
    }
};

static void triangulate()
{
    const std::size_t n = 4000;
    std::mt19937 rng(5);
    std::uniform_real_distribution<double> at(0, 1000);
    std::vector<double> coords(2 * n);
    std::vector<std::size_t> ids(n);
    for (auto& c : coords)
        c = at(rng);
    while (running()) {
        std::vector<double> dists(n);
        for (std::size_t i = 0; i < n; ++i) {
            ids[i] = i;
            dists[i] = std::hypot(coords[2 * i] - 500, coords[2 * i + 1] - 500);
        }
        std::sort(ids.begin(), ids.end(), compare{std::move(dists), coords});
        things = things + 1;
    }
    report("triangulations");
}

int main(int argc, char** argv)
{
    if (argc < 4)
        return 2;
    caseName = argv[1];
    seconds = std::atof(argv[2]);
    folder = std::string(argv[3]) + "/" + caseName;
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    began = std::chrono::steady_clock::now();
    std::map<std::string, void (*)()> cases{{"shell-prompt", run_shell},
        {"record-writer", write_statement}, {"shader-asm", assemble},
        {"scene-lights", live_render}, {"mesh-triangles", triangulate}};
    auto it = cases.find(caseName);
    if (it == cases.end())
        return 2;
    it->second();
    return 0;
}
