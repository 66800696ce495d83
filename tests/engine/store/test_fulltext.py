"""octo/store/fulltext.py: search in conversations that are kept as they are."""

import pytest

from octo.store import fulltext, transcripts
from octo.store.fulltext import Hit, Said, Source
from octo.store.store import Store
from octo.store.transcripts import Row

ONE, OTHER = Source("transcript", ("one",)), Source("transcript", ("other",))
TEXTS = {
    "one": [Said("user", "Où est la gare?"), Said("assistant", "Die Straße ist gesperrt."), Said("tool", " ")],
    "other": [Said("user", 'A "gare" — 100% OR nothing*'), Said("user", "octo: 我喜欢红色椅子🎉")],
}


class Kept:
    """Some conversations, and how often each was read."""

    def __init__(self, store, full_text):
        self.store = store
        self.full_text = full_text
        self.read = []

    async def find(self, query, kinds=("transcript",), most=50):
        def read(db, source):
            self.read.append(source.parts[0])
            return TEXTS[source.parts[0]]

        while await self.store.write(lambda db: fulltext.refresh(db, read, full_text=self.full_text)):
            pass
        return await self.store.read(lambda db: fulltext.search(db, query, kinds=kinds, most=most), [])


@pytest.fixture(params=[True, False], ids=["with an index", "without an index"])
async def kept(request):
    def fill(db):
        for at, id in enumerate(TEXTS):
            transcripts.begin(db, id, flow="f", title="", now=at)

    with Store() as store:
        await store.write(fill)
        yield Kept(store, request.param)


@pytest.mark.parametrize(
    ("query", "hits"),
    [
        ("gare", [(OTHER, 0), (ONE, 0)]),
        ("GARE la", [(ONE, 0)]),
        ("gar", [(OTHER, 0), (ONE, 0)]),
        ("straße", [(ONE, 1)]),
        ('100% "nothing*', [(OTHER, 0)]),
        ("gare OR straße", []),
        ("gare gesperrt", []),
        ("'; DROP TABLE x --", []),
        ("", []),
        ('"*%', []),
        ("红色", [(OTHER, 1)]),
        ("红色 gare", []),
        ("红色 octo", [(OTHER, 1)]),
        ("🎉", [(OTHER, 1)]),
        ("🎉 octo", [(OTHER, 1)]),
        ("🎈", []),
    ],
)
async def test_all_words_stand_in_one_text(kept, query, hits):
    assert await kept.find(query) == [Hit(source, TEXTS[source.parts[0]][at]) for source, at in hits]


async def test_only_so_many_are_found_and_only_of_the_kinds_that_are_asked_for(kept):
    assert await kept.find("gare", most=1) == [Hit(OTHER, TEXTS["other"][0])]
    assert await kept.find("gare", kinds=("managed", "thread")) == []
    assert await kept.find("gare", kinds=()) == []


async def test_a_conversation_is_read_again_only_when_it_has_changed(kept):
    await kept.find("gare")
    await kept.find("gare")
    assert kept.read == ["one", "other"]

    await kept.store.write(lambda db: transcripts.append(db, "one", [Row("user", "x", 9)]))
    await kept.find("gare")
    assert kept.read == ["one", "other", "one"]


async def test_what_is_deleted_is_gone_from_the_index_at_once(kept):
    await kept.find("gare")
    await kept.store.write(lambda db: transcripts.delete(db, "one"))

    texts = await kept.store.read(lambda db: db.execute("SELECT DISTINCT text FROM kept_texts").fetchall(), [])
    assert texts == [(said.text,) for said in TEXTS["other"]]
    assert await kept.find("gare") == [Hit(OTHER, TEXTS["other"][0])]


async def test_many_conversations_are_taken_in_by_several_transactions(kept):
    def fill(db):
        for at in range(1200):
            transcripts.begin(db, f"n{at}", flow="f", title="", now=at)

    await kept.store.write(fill)
    rounds = 1
    while await kept.store.write(
        lambda db: fulltext.refresh(db, lambda db, source: [Said("user", "many")], full_text=kept.full_text)
    ):
        rounds += 1

    assert rounds == 3
    assert (
        len(await kept.store.read(lambda db: fulltext.search(db, "many", kinds=["transcript"], most=9999), [])) == 1202
    )
