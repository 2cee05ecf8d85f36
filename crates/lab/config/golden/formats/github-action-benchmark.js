window.BENCHMARK_DATA = {
  "lastUpdate": 1600000000000,
  "repoUrl": "https://example.org/x",
  "entries": {
    "narrow": [
      {"commit": {"author": {"email": "a@example.org", "name": "A"}, "id": "7d5d6610", "message": "m", "timestamp": "2023-01-01T00:00:00Z"}, "date": 1672531200000, "tool": "cargo", "benches": [{"name": "Bitmap::from_iter/narrow/12345/0", "value": 8677, "range": "± 133", "unit": "ns/iter"}]},
      {"commit": {"id": "8e5d6610", "message": "n", "timestamp": "2023-01-02T00:00:00Z"}, "date": 1672617600000, "tool": "customBiggerIsBetter", "benches": [{"name": "score", "value": 78, "unit": "points"}]}
    ]
  }
}
