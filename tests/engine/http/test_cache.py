"""octo/http/cache.py: answers that are kept for a while."""

from octo.http.cache import Cache


def test_an_answer_is_kept_until_its_time_is_over():
    now = [100]
    cache = Cache[str](2, 10, lambda: now[0])
    cache.put("/a", "one")

    now[0] = 109
    assert cache.get("/a") == "one"
    now[0] = 110
    assert cache.get("/a") is None


def test_a_full_cache_drops_its_oldest_answer():
    cache = Cache[str](2, 10, lambda: 0)
    for url, answer in (("/a", "one"), ("/b", "two"), ("/a", "three"), ("/c", "four")):
        cache.put(url, answer)

    assert [cache.get(url) for url in ("/a", "/b", "/c")] == ["three", None, "four"]
