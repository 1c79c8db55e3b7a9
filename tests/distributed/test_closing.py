"""A server that closes leaves no client behind that waits for it."""

from __future__ import annotations

import asyncio
import gc

from atled.engine.multiprocess import wire


def test_who_connects_in_the_last_moment_is_told():
    """Python 3.11 loses a connection that is accepted in the turn in which its server closes; found as a deadlock."""

    async def once(pause: int) -> list[str]:
        async def serve(reader, writer):
            await asyncio.sleep(0.01)  # then `listen` closes the connection

        server = await wire.listen(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def client() -> str:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return "refused"
            writer.write(b"hello")
            try:
                await asyncio.wait_for(reader.read(), 5)
            except TimeoutError:
                return "left alone"
            except OSError:
                pass
            finally:
                writer.close()
            return "told"

        waiting = [asyncio.ensure_future(client()) for _ in range(8)]
        for _ in range(pause):
            await asyncio.sleep(0)
        await wire.stop_listening(server)
        return await asyncio.gather(*waiting)

    gc.disable()  # it would close the lost ones some day
    try:
        for pause in range(12):
            assert "left alone" not in asyncio.run(once(pause)), pause
    finally:
        gc.enable()
