// Its binary is loaded by Node.js, and not bundled.
export default { serverExternalPackages: ["uvarrow"] };
